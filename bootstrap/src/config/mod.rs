//! Configuration: read once, checked whole, and the same for everything in the process.
//!
//! Nothing here touches the environment or a file: [`Config::load`] is given both. `settings` is the
//! table of what there is; `values` finds each text, `parse` reads it, `problems` collects what is
//! wrong; `providers` and `tools` read the file's sections.

mod database;
mod names;
mod parse;
mod problems;
mod providers;
mod section;
mod settings;
mod show;
mod telemetry;
mod tools;
mod values;

pub(crate) use database::Database;
pub(crate) use problems::Problems;
pub(crate) use providers::{DEMO, ProviderConfig, ProviderKind};
pub(crate) use settings::Settings;
pub(crate) use show::{Shown, help};
pub(crate) use values::Environment;

use std::ops::Range;

use hango_application::use_cases::ApiSettings;
use hango_domain::agent::RunLimits;
use hango_tools::HttpToolSettings;

use values::{Setting, Values};

/// A configuration that works.
#[derive(Clone)]
pub(crate) struct Config {
    /// Every setting, as it holds.
    pub(crate) settings: Settings,
    /// Every provider, the built-in `demo` last.
    pub(crate) providers: Vec<ProviderConfig>,
    /// The operator's own tools.
    pub(crate) http_tools: Vec<HttpToolSettings>,
    /// Every setting as anyone may see it.
    pub(crate) shown: Vec<Shown>,
    /// Where this process fails on purpose.
    #[cfg(debug_assertions)]
    pub(crate) failpoints: crate::failpoints::Failpoints,
}

impl Config {
    /// Reads the environment, and the text of `hango.toml` if there is one. Says everything that is
    /// wrong at once.
    pub(crate) fn load(environment: &Environment, file: Option<&str>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let text = file.unwrap_or_default();
        let mut file = match text.parse::<toml::Table>() {
            Ok(file) => file,
            Err(error) => {
                problems.at(line(text, error.span()), error.message());
                toml::Table::new()
            }
        };
        let values = Values::resolve(table(), environment, &mut file, &mut problems);
        let providers = section(&mut file, "providers", &mut problems);
        let tools = section(&mut file, "tools", &mut problems);
        let known: Vec<_> = table().map(|setting| setting.name).collect();
        names::check_environment(environment, &known, cfg!(debug_assertions), &mut problems);
        names::check_file(&file, table(), &mut problems);

        // The sections are read even where a setting is wrong: everything is said at once.
        let settings = Settings::read(&values, &mut problems).or_else(defaults);
        let Some(settings) = settings else {
            return Err(problems);
        };
        settings.check(&mut problems);
        let providers = providers::read(providers, &settings, environment, &mut problems);
        let http_tools = tools::read(tools, &settings, environment, &mut problems);
        #[cfg(debug_assertions)]
        let failpoints = names::failpoints(environment, &mut problems);
        problems.check()?;
        Ok(Self {
            settings,
            providers,
            http_tools,
            shown: values.iter().map(Shown::of).collect(),
            #[cfg(debug_assertions)]
            failpoints,
        })
    }

    /// Whether anybody said what is to be logged.
    pub(crate) fn names_log(&self) -> bool {
        self.shown.iter().any(|shown| shown.is_chosen("HANGO_LOG"))
    }

    /// Legal choices that are probably mistakes.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.settings.warnings()
    }

    /// Refuses to run the API or the workers alone where nobody else can run the other half.
    pub(crate) fn check_parts(&self, no_workers: bool, no_api: bool) -> Result<(), Problems> {
        let mut problems = Problems::default();
        let split = [("--no-workers", no_workers), ("--no-api", no_api)];
        for (flag, _) in split.into_iter().filter(|(_, given)| *given) {
            if self.settings.database.is_embedded() {
                problems.at(
                    flag,
                    "a SQLite store belongs to one process, which has to do everything",
                );
            }
        }
        problems.check()
    }

    /// Refuses to show how hango works on a store that others may work with.
    pub(crate) fn check_embedded(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        if !self.settings.database.is_embedded() {
            problems.at(
                "HANGO_DATABASE_URL",
                "a quickstart makes a tenant, a key and an agent of its own, on an embedded store: \
                 leave it out, name a sqlite:// one, or use `hango serve`",
            );
        }
        problems.check()
    }
}

impl Settings {
    /// Notes combinations that cannot work.
    fn check(&self, problems: &mut Problems) {
        if self.run_heartbeat_interval.saturating_mul(2) >= self.run_lease_ttl {
            problems.at(
                "HANGO_RUN_HEARTBEAT_INTERVAL",
                "must be below half of HANGO_RUN_LEASE_TTL, so that one lost renewal loses no run",
            );
        }
        self.check_direct(problems);
        self.check_sampling(problems);
    }

    fn warnings(&self) -> Vec<String> {
        let turn = self.provider_idle_timeout + self.tool_timeout;
        let suspects = [
            (
                self.drain_timeout < turn,
                "HANGO_DRAIN_TIMEOUT is below HANGO_PROVIDER_IDLE_TIMEOUT + HANGO_TOOL_TIMEOUT: a shutdown repeats turns",
            ),
            (
                self.run_reclaim_interval > self.run_lease_ttl,
                "HANGO_RUN_RECLAIM_INTERVAL is above HANGO_RUN_LEASE_TTL: runs of a dead process wait long",
            ),
            (
                self.run_deadline < self.tool_timeout,
                "HANGO_RUN_DEADLINE is below HANGO_TOOL_TIMEOUT: a run ends before a slow tool does",
            ),
        ];
        suspects
            .into_iter()
            .filter(|(suspect, _)| *suspect)
            .map(|(_, what)| what.to_owned())
            .collect()
    }
}

impl From<&Settings> for RunLimits {
    fn from(settings: &Settings) -> Self {
        Self {
            max_iterations: settings.max_iterations,
            tool_timeout: settings.tool_timeout,
            deadline: settings.run_deadline,
        }
    }
}

impl From<&Settings> for ApiSettings {
    fn from(settings: &Settings) -> Self {
        Self {
            max_queued_runs_per_session: settings.max_queued_runs_per_session,
            running_per_tenant: settings.max_running_per_tenant,
            limits: settings.into(),
            repeat_call_threshold: settings.repeat_call_threshold,
        }
    }
}

/// Every setting of the contract.
fn table() -> impl Iterator<Item = &'static Setting> + Clone {
    settings::SETTINGS.iter()
}

/// The settings of somebody who says nothing.
fn defaults() -> Option<Settings> {
    let mut problems = Problems::default();
    let nothing = Environment::new();
    let values = Values::resolve(table(), &nothing, &mut toml::Table::new(), &mut problems);
    Settings::read(&values, &mut problems)
}

/// The place of a syntax error in the file.
fn line(text: &str, span: Option<Range<usize>>) -> String {
    let before = span.and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("hango.toml, line {}", before.split('\n').count()),
        None => "hango.toml".to_owned(),
    }
}

fn section(file: &mut toml::Table, name: &str, problems: &mut Problems) -> toml::Table {
    match file.remove(name) {
        None => toml::Table::new(),
        Some(toml::Value::Table(section)) => section,
        Some(_) => {
            problems.at(name, "not a section");
            toml::Table::new()
        }
    }
}

#[cfg(test)]
mod tests;

//! Everything of one scenario: replicas, database, provider, tools, clients, and a watch over them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use hango_test_database::{Guardian, Settings};
use tempfile::TempDir;

use crate::database::{Database, Kind, Place};
use crate::fleet::Fleet;
use crate::history::story::Story;
use crate::history::{self, Expect};
use crate::load::Load;
use crate::moment::Moment;
use crate::monitor::Monitor;
use crate::plan::Shape;
use crate::pulse::Pulse;
use crate::recovery::Recoveries;
use crate::replica::{self, Start};
use crate::report::Report;
use crate::store::{Claim, Facts};
use crate::summary;
use crate::timing::Timing;
use crate::truth::client::{Addresses, Client, KEY};
use crate::truth::provider::{Provider, Script};
use crate::truth::tools::Tools;

/// The provider's key, which nobody must see in a log, or wherever hango writes.
pub(crate) const CANARY: &str = "sk-canary-4b1d0c9e7f";

/// How long no run may end while some are there that have not.
const STANDS_STILL: Duration = Duration::from_secs(90);

/// How a scenario begins.
pub(crate) struct Setup {
    /// Its name.
    pub(crate) name: &'static str,
    /// What decides everything that can be decided.
    pub(crate) seed: u64,
    /// The kind of database.
    pub(crate) kind: Kind,
    /// How the database's server works.
    pub(crate) server: Settings,
    /// Where the database stores.
    pub(crate) place: Place,
    /// The replicas; a file has one.
    pub(crate) replicas: usize,
    /// What runs do.
    pub(crate) shape: Shape,
    /// What the model answers, where it is not what `shape` says.
    pub(crate) script: Option<Script>,
    /// How fast replicas notice each other.
    pub(crate) timing: Timing,
    /// More variables of every replica.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Whether nothing that can be claimed has to wait for a slot.
    pub(crate) slots_are_free: bool,
}

impl Setup {
    /// A storm over replicas on that kind of database.
    pub(crate) fn of(name: &'static str, seed: u64, kind: Kind, replicas: usize) -> Self {
        Self {
            name,
            seed,
            kind,
            server: Settings::default(),
            place: Place::Anywhere,
            replicas: match kind {
                Kind::Sqlite => 1,
                Kind::Postgres => replicas,
            },
            shape: Shape::STORM,
            script: None,
            timing: Timing::SHORT,
            variables: Vec::new(),
            slots_are_free: true,
        }
    }
}

/// A scenario under way.
pub(crate) struct World {
    /// What decides.
    pub(crate) seed: u64,
    /// How fast replicas notice each other.
    pub(crate) timing: Timing,
    /// The model.
    pub(crate) provider: Provider,
    /// The tools' services.
    pub(crate) tools: Tools,
    /// The database.
    pub(crate) database: Database,
    /// What is in it.
    pub(crate) facts: Facts,
    /// The replicas.
    pub(crate) fleet: Fleet,
    /// The clients.
    pub(crate) client: Client,
    /// What they ask for.
    pub(crate) load: Load,
    name: &'static str,
    kind: Kind,
    begun: Instant,
    monitor: Monitor,
    pulse: Pulse,
    _guardian: Guardian,
    // Last, so that nobody works in it any more when it is removed.
    dir: TempDir,
}

/// What came of a scenario, for its own goals.
pub(crate) struct Outcome {
    /// What is said of it.
    pub(crate) report: Report,
    /// Everything that is known.
    pub(crate) story: Story,
    /// How runs got on.
    pub(crate) recoveries: Recoveries,
}

impl Outcome {
    /// The longest time from one of these moments to the first claim behind it.
    pub(crate) fn longest_to_first_claim(&self, moments: &[Moment]) -> Duration {
        let events = self.story.runs.iter().flat_map(|told| &told.events);
        let mut claims: Vec<_> = events
            .filter(|event| event.kind == "run.started")
            .map(|event| event.at)
            .collect();
        claims.sort_unstable();
        let first = |moment: &Moment| {
            let claim = claims.iter().find(|claim| *claim >= moment);
            claim.map_or(Duration::MAX, |claim| claim.since(*moment))
        };
        moments.iter().map(first).max().unwrap_or_default()
    }

    /// Notes recoveries that took longer than they may: half of them a lease and a sweep, all but one of a
    /// hundred a lease, two sweeps and a second.
    pub(crate) fn must_recover(&mut self, timing: Timing) {
        let goals = [
            (0.5, timing.lease + timing.sweep),
            (0.99, timing.takeover() + Duration::from_secs(1)),
        ];
        for (share, goal) in goals {
            let took = self.recoveries.within(share);
            self.report.must_be_in_time(took <= goal, || {
                format!("goal: {share} of the recoveries took {took:?}, over {goal:?}")
            });
        }
    }
}

impl World {
    /// Starts everything.
    pub(crate) async fn start(setup: Setup) -> anyhow::Result<Self> {
        let Setup { seed, shape, .. } = setup;
        let dir = tempfile::Builder::new().prefix("hango-faults-").tempdir()?;
        let script = setup.script.unwrap_or_else(|| {
            Box::new(move |run, turn, serial| shape.reply(seed, run, turn, serial))
        });
        let provider = Provider::start(script).await?;
        let tools = Tools::start(Box::new(move |key| shape.tool_time(seed, key))).await?;
        std::fs::write(dir.path().join("hango.toml"), tools.config())?;

        let database = match setup.kind {
            Kind::Sqlite => Database::file(setup.place.or(dir.path())),
            Kind::Postgres => Database::server(setup.server, setup.replicas, &setup.place).await?,
        };
        let mut variables = setup.timing.variables();
        let own = [
            ("HANGO_LISTEN", "127.0.0.1:0".to_owned()),
            ("HANGO_BOOTSTRAP_API_KEY", KEY.to_owned()),
            ("HANGO_OPENAI_BASE_URL", provider.base_url()),
            ("OPENAI_API_KEY", CANARY.to_owned()),
            // A turn may be hit more often than a server would bear.
            ("HANGO_MAX_STALLED_ATTEMPTS", "0".to_owned()),
            ("HANGO_MAX_QUEUED_RUNS_PER_SESSION", "100000".to_owned()),
        ];
        let own = own.into_iter().chain(setup.variables);
        variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let guardian = replica::guardian()?;
        let start = Start {
            group: i32::try_from(guardian.group())?,
            dir: dir.path().to_owned(),
            variables,
        };
        let urls = database.urls.iter();
        let starts = urls.map(|url| start.with("HANGO_DATABASE_URL", url));
        let addresses = Addresses::default();
        let facts = database.facts.clone();
        let fleet = Fleet::new(starts.collect(), Arc::clone(&addresses), facts.clone());
        // The first one makes what the others find.
        fleet.start(0).await?;
        let others = (1..fleet.size()).map(|place| fleet.start(place));
        futures::future::try_join_all(others).await?;
        let client = Client::new(addresses)?;
        client.create_agent().await?;
        let slots_are_free = setup.slots_are_free;
        let monitor = Monitor::start(facts.clone(), fleet.clone(), setup.timing, slots_are_free);
        Ok(Self {
            seed,
            timing: setup.timing,
            provider,
            tools,
            database,
            facts,
            fleet,
            name: setup.name,
            kind: setup.kind,
            begun: Instant::now(),
            monitor,
            pulse: Pulse::start(),
            load: Load::of(&client),
            client,
            _guardian: guardian,
            dir,
        })
    }

    /// Waits until every run that was begun has ended, those too whose promise did not arrive; no longer
    /// than it takes them to make no progress at all.
    pub(crate) async fn settle(&self) {
        let ended = |state: &str| matches!(state, "succeeded" | "failed" | "cancelled");
        let (mut last, mut before) = (Instant::now(), None);
        while last.elapsed() < STANDS_STILL {
            // Whoever cannot be asked has not got on.
            let rows = self.facts.runs().await.unwrap_or_default();
            let done = rows.iter().filter(|row| ended(&row.state)).count();
            if self.load.pending() == 0 && !rows.is_empty() && done == rows.len() {
                return;
            }
            if before != Some(done) {
                (last, before) = (Instant::now(), Some(done));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The end: every replica is there again, everything settles, and the story is checked.
    pub(crate) async fn finish(self, expect: &Expect) -> anyhow::Result<Outcome> {
        self.finish_with(expect, None).await
    }

    /// The end of a scenario in which there is another tenant's client.
    pub(crate) async fn finish_with(
        self,
        expect: &Expect,
        other: Option<&Client>,
    ) -> anyhow::Result<Outcome> {
        let listening = self.fleet.listening();
        for place in (0..self.fleet.size()).filter(|place| !listening.contains(place)) {
            self.fleet.start(place).await?;
        }
        self.settle().await;
        let mut report = Report::default();
        for place in self.fleet.missing().await {
            let what = format!("process: replica {place} ended by itself");
            report.violations.push(what);
        }
        if !self.pulse.is_enough() {
            report.too_busy = Some(self.pulse.to_string());
        }
        let seen = self.monitor.seen();
        report.violations.extend(seen.violations);
        report.add_late(seen.late);
        let story = Story::read(&self, other)
            .await
            .context("read what hango says")?;
        report
            .violations
            .extend(history::objections(&story, expect));
        report.add_late(history::late(&story, expect));

        let recoveries = Recoveries::of(&story);
        summary::add(&mut report, &story, &recoveries);
        report.line(
            "watch",
            format!("{} looks into the database; {}", seen.looks, self.pulse),
        );
        report.title = format!(
            "{} on {}, {} replicas, seed {}",
            self.name,
            self.kind.name(),
            self.fleet.size(),
            self.seed
        );
        report.took = self.begun.elapsed();
        if !report.violations.is_empty() {
            report.kept = Some(self.keep());
        }
        Ok(Outcome {
            report,
            story,
            recoveries,
        })
    }

    /// Who held each claim, as far as somebody saw it.
    pub(crate) fn holders(&self) -> HashMap<Claim, String> {
        self.monitor.seen().holders
    }

    /// Leaves the directory with all logs behind.
    fn keep(self) -> PathBuf {
        self.dir.keep()
    }
}

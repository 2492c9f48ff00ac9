//! The wiring: which adapters stand behind which ports. Reads from top to bottom, and decides nothing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use anyhow::{Context, Error};
use hango_anthropic::AnthropicProvider;
use hango_application::engine::{Engine, EngineParts, EngineSettings};
use hango_application::live::LiveEvents;
use hango_application::signals::Signals;
use hango_application::telemetry::LogLines;
use hango_application::use_cases::{
    ApiSettings, Catalog, ProviderInfo, ToolInfo, Tracing, UseCases,
};
use hango_domain::OwnerId;
use hango_domain::agent::RunLimits;
use hango_domain::layers;
use hango_domain::retry::RetryPolicy;
use hango_domain::tool::{Registry, Tool};
use hango_openai::OpenAiProvider;
use hango_ports::{Clock, Ids, Provider, Stores};
use hango_scripted::ScriptedProvider;
use hango_tools::outbound::{Outbound, UrlPolicy};
use hango_tools::{GetTime, HttpFetch, HttpTool};

use crate::config::{Config, Problems, ProviderConfig, ProviderKind, Settings};
use crate::exporting::Exporting;
use crate::own::Own;
use crate::start;
use crate::store::Store;
use crate::system::{SteadyClock, SystemIds, WallClock};

/// Providers by what agents call them.
type Providers = BTreeMap<String, Arc<dyn Provider>>;

/// A server, wired, that executes nothing yet: its store may not be there.
pub(crate) struct Wired {
    store: Store,
    /// Everything the API can do.
    pub(crate) use_cases: Arc<UseCases>,
    /// The stores, for what reads beside the API.
    pub(crate) stores: Stores,
    live: Arc<LiveEvents>,
    parts: EngineParts,
    /// What operators are told beside the log.
    pub(crate) exporting: Exporting,
}

/// A server whose store is up to date.
pub(crate) struct App {
    store: Store,
    /// Everything the API can do.
    pub(crate) use_cases: Arc<UseCases>,
    /// The stores, for what reads beside the API.
    pub(crate) stores: Stores,
    /// What happens in this process.
    pub(crate) live: Arc<LiveEvents>,
    engine: Option<Engine>,
    exporting: Exporting,
}

/// What is left of a server that executes nothing any more; closed when nobody reads or tells any more.
pub(crate) struct Drained {
    store: Store,
    exporting: Exporting,
}

impl Wired {
    /// Makes the adapters and puts them together.
    pub(crate) async fn new(config: &Config, own: Own) -> anyhow::Result<Self> {
        let settings = &config.settings;
        let clock: Arc<dyn Clock> = Arc::new(WallClock);
        let ids: Arc<dyn Ids> = Arc::new(SystemIds);

        // Before the store, which nothing is done to under a configuration that does not work.
        let (providers, tools) = build(config, own.providers, own.tools, &clock)?;
        let owner = OwnerId(ids.uuid());
        let known = catalog(&providers, &tools).tools.into_iter();
        let known = known.map(|tool| tool.definition.name).collect();
        let exporting = Exporting::start(settings, owner, known)?;
        let log = own.telemetry.unwrap_or_else(|| Arc::new(LogLines));
        let telemetry = exporting.beside(log, settings);

        let store = Store::open(settings, Arc::new(SteadyClock::new()), true).await?;
        let stores = store.stores();
        exporting.watch(&stores.health);
        #[cfg(debug_assertions)]
        let stores = config.failpoints.stores(stores);

        let live = Arc::new(LiveEvents::default());
        let signals = Arc::new(Signals::new(store.wake_up()));
        let use_cases = UseCases::new(
            stores.clone(),
            Arc::clone(&ids),
            clock,
            Arc::clone(&signals),
            Arc::clone(&live),
            catalog(&providers, &tools),
            ApiSettings::from(settings),
        );
        let tracing = Tracing {
            sampling: settings.sampling(),
            requests: exporting.traces(),
        };
        let use_cases = Arc::new(use_cases.observed_by(Arc::clone(&telemetry), tracing));
        let parts = EngineParts {
            owner,
            runs: Arc::clone(&stores.runs),
            ids,
            providers,
            tools,
            sink: Arc::clone(&live) as _,
            telemetry,
            signals,
        };
        Ok(Self {
            store,
            use_cases,
            stores,
            live,
            parts,
            exporting,
        })
    }

    /// Sees to it that the store is what this build needs, however long that takes, and then begins to
    /// execute what is queued there, if this process `executes`.
    pub(crate) async fn start(self, settings: &Settings, executes: bool) -> anyhow::Result<App> {
        start::prepare(&self.store, &self.use_cases, settings).await?;
        let engine = if executes {
            tracing::info!(owner = %self.parts.owner, "executing runs");
            let settings = engine_settings(settings, self.store.is_exclusive());
            Some(Engine::start(self.parts, settings).context("start the engine")?)
        } else {
            None
        };
        Ok(App {
            store: self.store,
            use_cases: self.use_cases,
            stores: self.stores,
            live: self.live,
            engine,
            exporting: self.exporting,
        })
    }
}

impl App {
    /// Gives back what is being executed, within the drain's time. The store stays open for whoever
    /// still reads; close it last.
    pub(crate) async fn drain(self, settings: &Settings) -> Drained {
        if let Some(engine) = self.engine {
            engine.drain(settings.drain_timeout).await;
        }
        Drained {
            store: self.store,
            exporting: self.exporting,
        }
    }
}

impl Drained {
    /// Closes the store, and lets what was told of go its way.
    pub(crate) async fn close(self) {
        self.store.close().await;
        self.exporting.stop().await;
    }
}

/// Says what a start would find wrong when it makes the adapters of a configuration.
pub(crate) fn check(config: &Config, own: Own) -> Result<(), Problems> {
    let clock: Arc<dyn Clock> = Arc::new(WallClock);
    build(config, own.providers, own.tools, &clock).map(drop)
}

/// The providers and tools of a configuration, and those that the binary brings.
fn build(
    config: &Config,
    own_providers: Vec<(String, Arc<dyn Provider>)>,
    own_tools: Vec<Arc<dyn Tool>>,
    clock: &Arc<dyn Clock>,
) -> Result<(Providers, Registry), Problems> {
    let mut problems = Problems::default();
    let providers = build_providers(config, own_providers, &mut problems);
    let tools = build_tools(config, own_tools, clock, &mut problems);
    problems.check()?;
    Ok((providers, tools))
}

fn build_providers(
    config: &Config,
    own: Vec<(String, Arc<dyn Provider>)>,
    problems: &mut Problems,
) -> Providers {
    let mut providers = Providers::new();
    for provider in &config.providers {
        let name = provider.name.clone();
        let built = problems.keep(format_args!("providers.{name}"), build_provider(provider));
        #[cfg(debug_assertions)]
        let built = built.map(|built| config.failpoints.provider(built));
        providers.extend(built.map(|built| (name, built)));
    }
    for (name, own) in own {
        #[cfg(debug_assertions)]
        let own = config.failpoints.provider(own);
        match providers.entry(name) {
            Entry::Vacant(free) => {
                free.insert(own);
            }
            Entry::Occupied(taken) => problems.at(
                format_args!("provider {} of this binary", taken.key()),
                format_args!("there is already a provider {:?}", taken.key()),
            ),
        }
    }
    providers
}

fn build_provider(provider: &ProviderConfig) -> anyhow::Result<Arc<dyn Provider>> {
    Ok(match &provider.kind {
        ProviderKind::Anthropic { server, quirks } => {
            Arc::new(AnthropicProvider::new(server.as_ref().clone(), quirks)?)
        }
        ProviderKind::OpenAi {
            server,
            api,
            quirks,
        } => Arc::new(OpenAiProvider::new(server.as_ref().clone(), *api, quirks)?),
        ProviderKind::Scripted { script: None } => Arc::new(ScriptedProvider::demo()),
        ProviderKind::Scripted { script: Some(path) } => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("read {}", path.display()))?;
            let built = ScriptedProvider::from_toml(&text);
            Arc::new(built.with_context(|| format!("script {}", path.display()))?)
        }
    })
}

fn build_tools(
    config: &Config,
    own: Vec<Arc<dyn Tool>>,
    clock: &Arc<dyn Clock>,
    problems: &mut Problems,
) -> Registry {
    let get_time: Arc<dyn Tool> = Arc::new(GetTime::new(Arc::clone(clock)));
    let http_fetch: Arc<dyn Tool> = Arc::new(HttpFetch::new(outbound(&config.settings)));
    let mut tools = vec![
        (GetTime::NAME.to_owned(), get_time),
        (HttpFetch::NAME.to_owned(), http_fetch),
    ];
    for tool in &config.http_tools {
        let place = format!("tools.http.{}", tool.name);
        let built = problems.keep(&place, HttpTool::new(tool.clone()).map_err(Error::from));
        tools.extend(built.map(|built| (place, Arc::new(built) as _)));
    }
    tools.extend(own.into_iter().map(|tool| {
        let place = format!("tool {} of this binary", tool.definition().name);
        (place, tool)
    }));
    let mut registry = Registry::new();
    for (place, tool) in tools {
        #[cfg(debug_assertions)]
        let tool = config.failpoints.tool(tool);
        problems.keep(place, registry.register(tool).map_err(Error::from));
    }
    registry
}

fn outbound(settings: &Settings) -> Outbound {
    let hosts = settings.http_fetch_allowed_hosts.clone();
    let networks = settings.http_fetch_allowed_networks.clone();
    Outbound::new(UrlPolicy::new(hosts, networks), settings.tool_timeout)
}

fn catalog(providers: &Providers, tools: &Registry) -> Catalog {
    let view = tools.view(&[]);
    Catalog {
        providers: providers
            .iter()
            .map(|(name, provider)| ProviderInfo {
                name: name.clone(),
                kind: provider.kind().to_owned(),
            })
            .collect(),
        tools: tools
            .names()
            .filter_map(|name| view.get(name))
            .map(|tool| ToolInfo {
                definition: tool.definition(),
                idempotency: tool.idempotency(),
            })
            .chain(layers::tools().into_iter().map(ToolInfo::from))
            .collect(),
    }
}

fn engine_settings(settings: &Settings, exclusive: bool) -> EngineSettings {
    EngineSettings {
        workers: settings.run_workers,
        lease_ttl: settings.run_lease_ttl,
        heartbeat: settings.run_heartbeat_interval,
        reclaim_interval: settings.run_reclaim_interval,
        poll_interval: settings.run_poll_interval,
        max_stalled: settings.max_stalled_attempts,
        running_per_tenant: settings.max_running_per_tenant,
        limits: RunLimits::from(settings),
        tool_concurrency: settings.tool_concurrency,
        tool_output_max_bytes: settings.tool_output_max_bytes,
        repeat_call_threshold: settings.repeat_call_threshold,
        retry: RetryPolicy {
            max_retries: settings.provider_max_retries,
            inline_wait: settings.provider_inline_wait,
        },
        retention: settings.retention,
        exclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    /// What is found wrong when the adapters of a configuration are made.
    fn problems(file: &str) -> String {
        problems_with(file, Own::default())
    }

    fn problems_with(file: &str, own: Own) -> String {
        // As `main` does; another test may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = Config::load(&Environment::new(), Some(file)).expect("it can be read");
        check(&config, own)
            .err()
            .map(|it| it.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn what_its_adapters_refuse_is_wrong_with_the_configuration() {
        let said = problems(
            r#"
            [providers.played]
            kind = "scripted"
            script = "/no/such/script.toml"

            [[tools.http]]
            name = "get_time"
            description = "Takes the name of a built-in tool."
            url = "http://127.0.0.1:1"
            idempotency = "safe"
            parameters = { type = "object" }

            [[tools.http]]
            name = "odd"
            description = "Has no schema."
            url = "http://127.0.0.1:1"
            idempotency = "safe"
            parameters = { type = "object", properties = { a = { type = 5 } } }
            "#,
        );

        for place in [
            "providers.played: ",
            "tools.http.get_time: ",
            "tools.http.odd: ",
        ] {
            assert!(said.contains(place), "{said}");
        }
        assert_eq!(problems(""), "");
    }

    #[test]
    fn a_name_that_a_binary_brings_is_taken_once() {
        let provider = || Arc::new(ScriptedProvider::demo());
        let tool = || {
            let clock: Arc<dyn Clock> = Arc::new(WallClock);
            Arc::new(GetTime::new(clock))
        };
        let own = Own::default()
            .provider("demo", provider())
            .provider("local", provider())
            .provider("house", provider())
            .provider("house", provider())
            .tool(tool());

        let said = problems_with(
            r#"
            [providers.local]
            kind = "openai"
            base_url = "http://127.0.0.1:1/v1"
            "#,
            own,
        );

        let said: Vec<_> = said.lines().skip(1).map(str::trim).collect();
        let expected = [
            "provider demo of this binary: there is already a provider \"demo\"",
            "provider local of this binary: there is already a provider \"local\"",
            "provider house of this binary: there is already a provider \"house\"",
            "tool get_time of this binary: there is already a tool \"get_time\"",
        ];
        assert_eq!(said, expected);
    }
}

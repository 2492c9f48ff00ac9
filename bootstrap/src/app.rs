//! The wiring: which adapters stand behind which ports. Reads from top to bottom, and decides nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use hango_application::engine::{Engine, EngineParts, EngineSettings};
use hango_application::live::LiveEvents;
use hango_application::signals::Signals;
use hango_application::telemetry::LogLines;
use hango_application::use_cases::{ApiSettings, Catalog, ProviderInfo, ToolInfo, UseCases};
use hango_domain::OwnerId;
use hango_domain::agent::RunLimits;
use hango_domain::layers;
use hango_domain::retry::RetryPolicy;
use hango_domain::tool::{Registry, Tool};
use hango_openai::OpenAiProvider;
use hango_ports::wake_up::Alone;
use hango_ports::{Clock, Ids, Provider, Stores};
use hango_scripted::ScriptedProvider;
use hango_sqlite::SqliteStore;
use hango_tools::{GetTime, HttpTool};

use crate::config::{Config, ProviderConfig, ProviderKind, Settings};
use crate::store;
use crate::system::{SystemClock, SystemIds};

/// A server, wired but not listening.
pub(crate) struct App {
    store: Arc<SqliteStore>,
    /// Everything the API can do.
    pub(crate) use_cases: Arc<UseCases>,
    /// The stores, for what reads beside the API.
    pub(crate) stores: Stores,
    /// What happens in this process.
    pub(crate) live: Arc<LiveEvents>,
    engine: Engine,
}

impl App {
    /// Opens the store, brings it up to date, and starts to execute what is queued there.
    pub(crate) async fn start(config: &Config) -> anyhow::Result<Self> {
        let settings = &config.settings;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let ids: Arc<dyn Ids> = Arc::new(SystemIds);

        let store = open_store(settings, Arc::clone(&clock)).await?;
        let stores = store.stores();

        let providers = config
            .providers
            .iter()
            .map(|provider| Ok((provider.name.clone(), build_provider(provider)?)))
            .collect::<anyhow::Result<BTreeMap<_, _>>>()?;
        let tools = build_tools(config, &clock)?;

        let live = Arc::new(LiveEvents::default());
        let signals = Arc::new(Signals::new(Arc::new(Alone)));
        let use_cases = Arc::new(UseCases::new(
            stores.clone(),
            Arc::clone(&ids),
            clock,
            Arc::clone(&signals),
            Arc::clone(&live),
            catalog(&providers, &tools),
            ApiSettings::from(settings),
        ));
        if let Some(key) = &settings.bootstrap_api_key {
            use_cases
                .ensure_bootstrap(key.clone())
                .await
                .context("make the bootstrap key")?;
        }

        let parts = EngineParts {
            owner: OwnerId(ids.uuid()),
            runs: Arc::clone(&stores.runs),
            ids,
            providers,
            tools,
            sink: Arc::clone(&live) as _,
            telemetry: Arc::new(LogLines),
            signals,
        };
        let engine = Engine::start(parts, engine_settings(settings)).context("start the engine")?;
        Ok(Self {
            store,
            use_cases,
            stores,
            live,
            engine,
        })
    }

    /// Gives back what is being executed, within the drain's time. The store stays open for whoever
    /// still reads; close it last.
    pub(crate) async fn drain(self, settings: &Settings) -> Arc<SqliteStore> {
        self.engine.drain(settings.drain_timeout).await;
        self.store
    }
}

/// Opens the store for executing, its schema brought up to date.
async fn open_store(
    settings: &Settings,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<SqliteStore>> {
    let store = store::open(settings, clock, true).await?;
    if settings.auto_migrate {
        store
            .migrate()
            .await
            .context("bring the schema up to date")?;
    } else {
        let pending = store.pending().await.context("read the schema's version")?;
        anyhow::ensure!(
            pending.is_empty(),
            "the schema is {} migrations behind and HANGO_AUTO_MIGRATE is false; run `hango migrate`",
            pending.len()
        );
    }
    Ok(store)
}

fn build_provider(provider: &ProviderConfig) -> anyhow::Result<Arc<dyn Provider>> {
    Ok(match &provider.kind {
        ProviderKind::OpenAi(openai) => {
            let built = OpenAiProvider::new(openai.as_ref().clone());
            Arc::new(built.with_context(|| format!("provider {}", provider.name))?)
        }
        ProviderKind::Scripted { script: None } => Arc::new(ScriptedProvider::demo()),
        ProviderKind::Scripted { script: Some(path) } => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("read {}", path.display()))?;
            let built = ScriptedProvider::from_toml(&text);
            Arc::new(built.with_context(|| format!("script {}", path.display()))?)
        }
    })
}

fn build_tools(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Registry> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(GetTime::new(Arc::clone(clock)))];
    for tool in &config.http_tools {
        let built = HttpTool::new(tool.clone());
        tools.push(Arc::new(
            built.with_context(|| format!("tool {}", tool.name))?,
        ));
    }
    let mut registry = Registry::new();
    for tool in tools {
        registry.register(tool)?;
    }
    Ok(registry)
}

fn catalog(providers: &BTreeMap<String, Arc<dyn Provider>>, tools: &Registry) -> Catalog {
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

fn engine_settings(settings: &Settings) -> EngineSettings {
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
        // The store's file is locked for this process.
        exclusive: true,
    }
}

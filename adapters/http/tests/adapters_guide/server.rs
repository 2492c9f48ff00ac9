//! The guide's server: hango put together by a team, with adapters of its own.

// region: server
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hango_application::engine::{Engine, EngineParts, EngineSettings};
use hango_application::live::LiveEvents;
use hango_application::signals::Signals;
use hango_application::use_cases::{
    ApiSettings, Catalog, KeyText, ProviderInfo, ToolInfo, UseCases,
};
use hango_domain::tool::Registry;
use hango_domain::{OwnerId, layers};
use hango_http::{Api, Limits, Readiness};
use hango_ports::wake_up::Alone;
use hango_ports::{Clock, Ids, Provider, Stores, Telemetry, Tool};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What a team brings.
pub(crate) struct Own {
    pub(crate) stores: Stores,
    pub(crate) providers: BTreeMap<String, Arc<dyn Provider>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) telemetry: Arc<dyn Telemetry>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

/// What an operator of it sets.
pub(crate) struct Settings {
    pub(crate) engine: EngineSettings,
    pub(crate) api: ApiSettings,
    pub(crate) max_body_bytes: usize,
    pub(crate) bootstrap_api_key: KeyText,
    pub(crate) drain_timeout: Duration,
}

/// Serves on `listener` until `stop` comes true, and gives back what is being executed then.
pub(crate) async fn serve(
    own: Own,
    settings: Settings,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut tools = Registry::new();
    for tool in own.tools {
        tools.register(tool)?;
    }
    let live = Arc::new(LiveEvents::default());
    // With other processes on the same store: its adapter's wake-up.
    let signals = Arc::new(Signals::new(Arc::new(Alone)));
    let use_cases = Arc::new(UseCases::new(
        own.stores.clone(),
        Arc::clone(&own.ids),
        own.clock,
        Arc::clone(&signals),
        Arc::clone(&live),
        catalog(&own.providers, &tools),
        settings.api,
    ));
    use_cases
        .ensure_bootstrap(settings.bootstrap_api_key)
        .await?;
    let engine = Engine::start(
        EngineParts {
            owner: OwnerId(own.ids.uuid()),
            runs: Arc::clone(&own.stores.runs),
            ids: own.ids,
            providers: own.providers,
            tools,
            sink: live,
            telemetry: own.telemetry,
            signals,
        },
        settings.engine,
    )?;

    let readiness = Arc::new(Readiness::new(own.stores.health));
    readiness.start();
    let router = hango_http::router(Api {
        use_cases,
        readiness: Arc::clone(&readiness),
        rates: Arc::default(),
        max_body_bytes: settings.max_body_bytes,
        admin_token: None,
        metrics: None,
    });
    let last_requests = CancellationToken::new();
    let stopped = last_requests.clone().cancelled_owned();
    let api = hango_http::serve(listener, router, stopped, Limits::default());
    let api = tokio::spawn(api);

    stop.await;
    // The order of the end: no new work, the runs back to the queue, the API, and the store last.
    readiness.drain();
    engine.drain(settings.drain_timeout).await;
    last_requests.cancel();
    Ok(api.await?)
}

/// What agents can be made of.
fn catalog(providers: &BTreeMap<String, Arc<dyn Provider>>, tools: &Registry) -> Catalog {
    let providers = providers.iter().map(|(name, provider)| ProviderInfo {
        name: name.clone(),
        kind: provider.kind().to_owned(),
    });
    let registered = tools.names().filter_map(|name| tools.get(name));
    let registered = registered.map(|tool| ToolInfo {
        definition: tool.definition(),
        idempotency: tool.idempotency(),
    });
    let of_layers = layers::tools().into_iter().map(ToolInfo::from);
    Catalog {
        providers: providers.collect(),
        tools: registered.chain(of_layers).collect(),
    }
}
// endregion: server

//! `hango serve`: API and engine, or one of them, until a signal says to stop.
//!
//! It listens before its store is there, and tells how it is.
//!
//! The order of the end: not ready at once, no new claims, runs given back at their boundaries while
//! the API still answers, then the API, and the store last. A second signal ends the process at once,
//! which is only a crash.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use hango_http::{Api, Limits, RateLimits, Rates, Readiness, metrics_router};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::{App, Wired};
use crate::config::{Config, Settings};
use crate::own::Own;

/// How long requests in flight may take to end once everything else has.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// What a process does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves {
    /// It answers the API's calls.
    pub(crate) api: bool,
    /// It executes runs.
    pub(crate) workers: bool,
}

impl Halves {
    /// Everything.
    pub(crate) const BOTH: Self = Self {
        api: true,
        workers: true,
    };
}

/// Runs a server until it is told to stop.
pub(crate) async fn serve(config: Config, own: Own, halves: Halves) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let Some(server) = Server::start_unless(&config, own, halves, &mut signals).await? else {
        return Ok(());
    };
    signals.first().await;
    server.stop(&config.settings).await;
    Ok(())
}

/// A server that listens.
pub(crate) struct Server {
    /// What it is made of.
    pub(crate) app: App,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    readiness: Arc<Readiness>,
    stop: CancellationToken,
    listening: JoinSet<()>,
}

impl Server {
    /// Starts to listen, and to execute as soon as the store is ready; then says so on standard output.
    /// Until then it tells whoever asks that it is not ready.
    pub(crate) async fn start(config: &Config, own: Own, halves: Halves) -> anyhow::Result<Self> {
        let settings = &config.settings;
        for warning in config.warnings() {
            tracing::warn!("{warning}");
        }
        // Before the store, so that a taken port does not cost a start.
        let listener = TcpListener::bind(settings.listen)
            .await
            .with_context(|| format!("cannot listen on HANGO_LISTEN {}", settings.listen))?;
        let address = listener
            .local_addr()
            .context("read the listener's address")?;
        let metrics_listener = match settings.metrics_listen {
            None => None,
            Some(address) => {
                let bound = TcpListener::bind(address).await;
                let context = || format!("cannot listen on HANGO_METRICS_LISTEN {address}");
                Some(bound.with_context(context)?)
            }
        };
        let wired = Wired::new(config, own).await?;
        let page = wired.exporting.page();

        let readiness = Arc::new(Readiness::new(Arc::clone(&wired.stores.health)));
        let api = Api {
            use_cases: Arc::clone(&wired.use_cases),
            readiness: Arc::clone(&readiness),
            rates: Arc::new(Rates::new(RateLimits {
                per_key: settings.rate_limit_per_key,
                per_tenant: settings.rate_limit_per_tenant,
            })),
            max_body_bytes: settings.max_body_bytes,
            admin_token: settings.admin_token,
            metrics: page.clone().filter(|_| settings.shows_metrics()),
        };
        let routes = if halves.api {
            hango_http::router(api)
        } else {
            hango_http::platform_router(api)
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let limits = Limits {
            last_requests: LAST_REQUESTS,
            ..Limits::default()
        };
        let mut listening = JoinSet::new();
        listening.spawn(hango_http::serve(listener, routes, stopped, limits));
        if let Some((listener, page)) = metrics_listener.zip(page) {
            let (routes, stopped) = (metrics_router(page), stop.clone().cancelled_owned());
            listening.spawn(hango_http::serve(listener, routes, stopped, limits));
        }
        let app = wired.start(settings, halves.workers).await?;
        readiness.start();
        announce(address);
        Ok(Self {
            app,
            address,
            readiness,
            stop,
            listening,
        })
    }

    /// Starts, unless a signal comes first: `None` then. What was begun is left like after a crash.
    pub(crate) async fn start_unless(
        config: &Config,
        own: Own,
        halves: Halves,
        signals: &mut Signals,
    ) -> anyhow::Result<Option<Self>> {
        tokio::select! {
            server = Self::start(config, own, halves) => server.map(Some),
            () = signals.next() => Ok(None),
        }
    }

    /// Stops: the engine first, the store last.
    pub(crate) async fn stop(mut self, settings: &Settings) {
        self.readiness.drain();
        let drained = self.app.drain(settings).await;
        self.stop.cancel();
        while let Some(ended) = self.listening.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a listener did not end well");
            }
        }
        drained.close().await;
        tracing::info!("stopped");
    }
}

/// The line that says where the server listens. Whoever started the process may have closed its
/// standard output; that is no reason to stop.
fn announce(address: SocketAddr) {
    let mut out = std::io::stdout();
    let said = writeln!(out, "listening on http://{address}").and_then(|()| out.flush());
    if let Err(error) = said {
        tracing::warn!(%error, "standard output is closed");
    }
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "listening");
}

/// The signals that end the process.
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes over the handling of both. Done before anybody can know that there is a server, so that
    /// none finds it unprepared.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("handle SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("handle SIGTERM")?,
        })
    }

    /// Waits for the first, and from then on ends the process at the second.
    pub(crate) async fn first(mut self) {
        self.next().await;
        tokio::spawn(async move {
            self.next().await;
            tracing::warn!("second signal: stopping at once");
            std::process::exit(1);
        });
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

//! The page that Prometheus reads. Nobody is asked for a key: it is on a listener of its own, or on the API's
//! while only the machine itself can reach that.

use std::sync::Arc;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use hango_ports::telemetry::MetricsPage;
use http::header;
use tokio::task::spawn_blocking;

use crate::Api;
use crate::problem::Problem;

/// Where it is.
const PATH: &str = "/metrics";

/// Prometheus' text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page, on a listener of its own.
pub fn router(page: Arc<dyn MetricsPage>) -> Router {
    shown(page)
}

/// The page, where the API is, if it is there.
pub(crate) fn routes(page: Option<&Arc<dyn MetricsPage>>) -> Router<Api> {
    page.map(Arc::clone).map(shown).unwrap_or_default()
}

fn shown<S: Clone + Send + Sync + 'static>(page: Arc<dyn MetricsPage>) -> Router<S> {
    let read = get(async move || match write(page).await {
        Some(text) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
        None => Problem::panicked().into_response(),
    });
    Router::new().route(PATH, read)
}

/// Writes the page, beside the runtime: there may be many series. Why that does not work is for the log.
async fn write(page: Arc<dyn MetricsPage>) -> Option<String> {
    match spawn_blocking(move || page.page()).await {
        Ok(Ok(text)) => Some(text),
        Ok(Err(error)) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "no page of metrics"
            );
            None
        }
        Err(error) => {
            tracing::error!(%error, "no page of metrics");
            None
        }
    }
}

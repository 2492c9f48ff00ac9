//! The description for whoever looks at it: the document, and a page that shows it. The page is served whole
//! by this process; it loads nothing from elsewhere.

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use http::{Uri, header};
use serde_json::Value;
use utoipa_swagger_ui::{Config, SwaggerFile};

use crate::Api;
use crate::problem::Problem;

/// Where the document is.
const DOCUMENT: &str = "/openapi.json";

/// Where the page is, and behind it its files.
const PAGE: &str = "/docs/";

/// The page's own file.
const INDEX: &str = "index.html";

/// The page takes its own files and asks its own server, writes its styles as it goes, and stands in nobody's
/// frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The document and the page that shows it, to which somebody is led who names nothing.
pub(crate) fn pages(document: &Value) -> Router<Api> {
    let text = Bytes::from(document.to_string());
    let document = async move || ([(header::CONTENT_TYPE, "application/json")], text);
    let config = Arc::new(Config::new([DOCUMENT]).validator_url("none"));
    let file = get(move |uri: Uri| ready(file(&uri, &config)));
    Router::new()
        .route("/", get(async || Redirect::to("/docs")))
        .route("/docs", get(async || Redirect::to(PAGE)))
        .route(PAGE, file.clone())
        .route("/docs/{*file}", file)
        .route(DOCUMENT, get(document))
}

/// A file of the page.
fn file(uri: &Uri, config: &Arc<Config<'static>>) -> Response {
    let name = match uri.path().strip_prefix(PAGE) {
        None | Some("") => INDEX,
        Some(name) => name,
    };
    let found = utoipa_swagger_ui::serve(name, Arc::clone(config));
    let Some(SwaggerFile {
        bytes,
        content_type,
        ..
    }) = found.expect("what is built in is text")
    else {
        return Problem::not_found().into_response();
    };
    let typed = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY.to_owned()),
    ];
    if name == INDEX {
        let page = String::from_utf8_lossy(&bytes);
        let titled = page.replace("<title>Swagger UI</title>", "<title>hango's API</title>");
        return (typed, titled).into_response();
    }
    (typed, bytes).into_response()
}

//! For fuzzing: what the protocols' events mean, without a server.

use hango_provider_http::{Dialect, Origin, testing};
use serde_json::Map;
use url::Url;

use crate::quirk::Quirk;
use crate::{chat, responses};

/// How the events of one answer of chat completions are read, from a server with these quirks.
///
/// # Panics
///
/// Never: the URL is one.
#[must_use]
pub fn chat(quirks: &[Quirk]) -> impl Dialect + use<> {
    let url = Url::parse("http://localhost/v1").expect("a URL");
    let requests = chat::Requests::new("fuzzed", &url, Map::new(), quirks);
    requests.mapping(Origin::named("fuzzed"), testing::call(Vec::new()))
}

/// How the events of one answer of the Responses API are read.
#[must_use]
pub fn responses() -> impl Dialect {
    responses::Mapping::new(Origin::named("fuzzed"), "m")
}

//! One request and its answer, on a connection that has no other.

use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST};
use http::header::{HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use super::connection::{Budget, Metered, Stream};
use super::failure::Failure;
use super::policy::Target;

/// How long the head of an answer may be.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// How many headers a head may have, however short they are.
const MAX_HEADERS: usize = 1000;

/// How much may be read until the head is there: whatever is said before it counts, and a buffer may hold
/// the beginning of the body behind it.
const MAX_PREAMBLE_BYTES: usize = 2 * MAX_HEAD_BYTES;

/// What came of one request.
pub(super) enum Answer {
    /// This.
    Whole(Fetched),
    /// It is to be had elsewhere: the header's bytes.
    Elsewhere(Vec<u8>),
}

/// An answer, of whatever status.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fetched {
    /// The protocol's version.
    pub version: Version,
    /// The status.
    pub status: StatusCode,
    /// The header `content-type`, if it is there and is text.
    pub content_type: Option<String>,
    /// The body's beginning; nothing has decoded it.
    pub body: Vec<u8>,
    /// Whether there is more of it.
    pub cut: bool,
}

/// Asks for the target and reads at most `max_bytes` of the answer's body. What is left of the connection
/// ends with the returned future.
pub(super) async fn get(
    stream: Box<dyn Stream>,
    target: &Target,
    max_bytes: usize,
) -> Result<Answer, Failure> {
    let (stream, budget) = Metered::new(stream, MAX_PREAMBLE_BYTES);
    let broken = |error| failure(&error, &budget);
    let request = request(target)?;
    let (mut sender, connection) = http1::Builder::new()
        .max_header_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    // Aborted when it is dropped.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let response = sender.send_request(request).await.map_err(broken)?;
    budget.lift();
    let status = response.status();
    if status.is_informational() {
        // Nobody asked for another protocol.
        return Err(Failure::BadResponse);
    }
    if let Some(location) = location(status, response.headers())? {
        return Ok(Answer::Elsewhere(location));
    }
    read(response, max_bytes).await.map(Answer::Whole)
}

fn request(target: &Target) -> Result<Request<Empty<Bytes>>, Failure> {
    Request::get(target.asked_for())
        .header(HOST, target.authority())
        .header(USER_AGENT, concat!("hango/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .body(Empty::new())
        .map_err(|_| Failure::InvalidUrl)
}

fn failure(error: &hyper::Error, budget: &Budget) -> Failure {
    if error.is_parse_too_large() || budget.is_spent() {
        Failure::TooLarge
    } else {
        Failure::BadResponse
    }
}

/// Where a redirect leads; `None` if the answer is none. One that leads to two places is refused.
fn location(status: StatusCode, headers: &HeaderMap) -> Result<Option<Vec<u8>>, Failure> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let mut locations = headers.get_all(LOCATION).iter();
    let first = locations.next().map(|value| value.as_bytes().to_vec());
    match locations.next() {
        None => Ok(first),
        Some(_) => Err(Failure::BadResponse),
    }
}

async fn read(response: Response<Incoming>, max_bytes: usize) -> Result<Fetched, Failure> {
    let (head, mut frames) = response.into_parts();
    let encodings = head.headers.get_all(CONTENT_ENCODING);
    if encodings.iter().any(is_encoded) {
        return Err(Failure::BadResponse);
    }
    let content_type = head.headers.get(CONTENT_TYPE);
    let mut fetched = Fetched {
        version: head.version,
        status: head.status,
        content_type: content_type.and_then(|it| it.to_str().ok().map(str::to_owned)),
        body: Vec::new(),
        cut: false,
    };
    while let Some(frame) = frames.frame().await {
        let frame = frame.map_err(|_| Failure::BadResponse)?;
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        let room = max_bytes - fetched.body.len();
        fetched
            .body
            .extend_from_slice(&bytes[..room.min(bytes.len())]);
        if bytes.len() > room {
            fetched.cut = true;
            break;
        }
    }
    Ok(fetched)
}

/// Whether a body has to be decoded, although nothing of the kind was asked for: what a few bytes become
/// then is a bomb's business.
fn is_encoded(encoding: &HeaderValue) -> bool {
    !encoding
        .as_bytes()
        .trim_ascii()
        .eq_ignore_ascii_case(b"identity")
}

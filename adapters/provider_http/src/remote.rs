//! The HTTP client of one provider, and one call from request to the answer's beginning.

use std::time::Duration;

use futures::stream::{self, StreamExt};
use hango_domain::model::{FailureCause, ModelFailure, ModelFailureKind};
use hango_ports::provider::{AnswerStream, ServerAddress};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::failure::{Origin, is_html};
use crate::settings::{Settings, SettingsError};
use crate::wire::{self, Dialect, Patience};

/// How many bytes of a stream may be on their way, and wait here until they are read.
const WINDOW: u32 = 256 << 10;

/// What requests of one protocol look like from outside.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The path behind the base URL.
    pub path: &'static [&'static str],
    /// The header that carries the key, in lower case, and what stands before the key in it.
    pub key: (&'static str, &'static str),
    /// Headers of every request, in lower case.
    pub headers: &'static [(&'static str, &'static str)],
    /// The header in which the server tells its id of a request.
    pub request_id: &'static str,
}

/// A server that is asked in one protocol.
#[derive(Clone, Debug)]
pub struct Remote {
    client: Client,
    url: Url,
    origin: Origin,
    request_id: &'static str,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
}

impl Remote {
    /// A server as configured. Proxy variables of the environment hold for it, as they are now.
    pub fn new(settings: &Settings, protocol: &Protocol) -> Result<Self, SettingsError> {
        let url = endpoint(settings, protocol)?;
        let client = Client::builder()
            .user_agent(concat!("hango/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers(settings, protocol)?)
            .connect_timeout(settings.connect_timeout)
            .redirect(Policy::none())
            .http2_initial_stream_window_size(WINDOW)
            .build()
            .map_err(|source| SettingsError::Client {
                name: settings.name.clone(),
                source,
            })?;
        Ok(Self {
            client,
            url,
            origin: Origin {
                provider: settings.name.clone(),
                secrets: secrets(settings),
                request_id: None,
            },
            request_id: protocol.request_id,
            first_byte_timeout: settings.first_byte_timeout,
            idle_timeout: settings.idle_timeout,
        })
    }

    /// Where requests go.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Where the server is.
    #[must_use]
    pub fn server(&self) -> Option<ServerAddress> {
        Some(ServerAddress {
            host: self.url.host_str()?.to_owned(),
            port: self.url.port_or_known_default()?,
        })
    }

    /// Sends a request, once. Returns when its answer begins; `dialect` reads it, and is told whose it is.
    pub async fn ask<D: Dialect>(
        &self,
        body: &Map<String, Value>,
        dialect: impl FnOnce(Origin) -> D + Send,
    ) -> Result<AnswerStream, ModelFailure> {
        let patience = Patience {
            first_byte: Instant::now() + self.first_byte_timeout,
            idle: self.idle_timeout,
        };
        let response = self.send(body, patience.first_byte).await?;
        let origin = Origin {
            request_id: header(&response, self.request_id),
            ..self.origin.clone()
        };
        if !response.status().is_success() {
            return Err(self.refusal(response, &origin).await);
        }
        if header(&response, CONTENT_ENCODING.as_str()).is_some_and(|coding| coding != "identity") {
            let message = "compressed its answer, which was not asked for";
            return Err(origin.failure(ModelFailureKind::Protocol, message));
        }
        let mut dialect = dialect(origin.clone());
        let content_type = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        let body = response.bytes_stream();
        if content_type.contains("json") || content_type.contains("html") {
            let text = wire::text(body, origin.clone(), patience, wire::MAX_EVENT).await?;
            if is_html(&text) {
                let message = "answered with a page instead of a stream";
                return Err(origin.failure(ModelFailureKind::Unavailable, message));
            }
            let mut events = Vec::new();
            let failure = dialect.whole(&text, &mut events).err();
            let events = events.into_iter().map(Ok).chain(failure.map(Err));
            return Ok(stream::iter(events).boxed());
        }
        Ok(wire::answer(body, origin, patience, dialect).boxed())
    }

    async fn send(
        &self,
        body: &Map<String, Value>,
        first_byte: Instant,
    ) -> Result<Response, ModelFailure> {
        let request = self.client.post(self.url.clone()).json(body).send();
        match timeout_at(first_byte, request).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_timeout() => {
                Err(self.unavailable("could not be reached in time"))
            }
            Ok(Err(error)) => Err(self
                .origin
                .broken("could not be reached", &error.without_url())),
            Err(_) => Err(self.unavailable("did not begin to answer in time")),
        }
    }

    async fn refusal(&self, response: Response, origin: &Origin) -> ModelFailure {
        let (status, headers) = (response.status(), response.headers().clone());
        // The status alone says enough if the body does not come.
        let patience = Patience {
            first_byte: Instant::now() + self.idle_timeout,
            idle: self.idle_timeout,
        };
        let body = response.bytes_stream();
        let body = wire::text(body, origin.clone(), patience, wire::MAX_REFUSAL);
        let body = timeout(self.idle_timeout, body).await;
        origin.refused(
            status,
            &headers,
            &body.ok().and_then(Result::ok).unwrap_or_default(),
        )
    }

    fn unavailable(&self, message: &str) -> ModelFailure {
        let failure = self.origin.failure(ModelFailureKind::Unavailable, message);
        failure.caused_by(FailureCause::Timeout)
    }
}

fn endpoint(settings: &Settings, protocol: &Protocol) -> Result<Url, SettingsError> {
    let mut url = settings.base_url.clone();
    let is_http = matches!(url.scheme(), "http" | "https");
    match url.path_segments_mut() {
        Ok(mut path) if is_http => {
            path.pop_if_empty().extend(protocol.path);
        }
        Ok(_) | Err(()) => {
            return Err(SettingsError::BaseUrl {
                name: settings.name.clone(),
            });
        }
    }
    Ok(url)
}

fn headers(settings: &Settings, protocol: &Protocol) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in protocol.headers {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    if let Some(key) = &settings.api_key {
        let (name, before) = protocol.key;
        let value = HeaderValue::try_from(format!("{before}{}", key.expose_secret()));
        let mut value = value.map_err(|_| SettingsError::ApiKey {
            name: settings.name.clone(),
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers.extend(settings.headers.clone());
    Ok(headers)
}

/// What a server must not bring into a log by quoting its client.
fn secrets(settings: &Settings) -> Vec<SecretString> {
    let sensitive = settings.headers.values();
    let sensitive = sensitive.filter(|value| value.is_sensitive());
    let sensitive = sensitive.filter_map(|value| Some(value.to_str().ok()?.into()));
    sensitive.chain(settings.api_key.clone()).collect()
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

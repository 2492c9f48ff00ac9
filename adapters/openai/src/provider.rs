//! The provider: its settings, its HTTP client, and one call from request to the answer's beginning.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use hango_domain::model::{ModelCall, ModelFailure, ModelFailureKind};
use hango_ports::Provider;
use hango_ports::provider::AnswerStream;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::failure::{Origin, is_html};
use crate::mapping::Mapping;
use crate::request::Requests;
use crate::wire::{self, Patience};

/// How an operator configured the provider.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name in the configuration; failures and [`ProviderData`] name it.
    ///
    /// [`ProviderData`]: hango_domain::conversation::ProviderData
    pub name: String,
    /// Where the API is, its version included: `https://api.openai.com/v1`.
    pub base_url: Url,
    /// Sent as a bearer token; `None` sends none.
    pub api_key: Option<SecretString>,
    /// Sent with every request; they win over those that hango sends itself. Values that are marked
    /// sensitive are shown to nobody, as the key is not.
    pub headers: HeaderMap,
    /// Members of every request's body; they win over those that hango sends itself.
    pub extra_body: Map<String, Value>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long the first byte of an answer may take, the connection included.
    pub first_byte_timeout: Duration,
    /// How far apart two reads of an answer may be.
    pub idle_timeout: Duration,
}

/// Why there is no such provider.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The base URL is not one of HTTP.
    #[error("the base URL of provider {name} is not an http or https address")]
    BaseUrl {
        /// The provider.
        name: String,
    },
    /// No header can carry the key.
    #[error("the API key of provider {name} holds characters that no header can carry")]
    ApiKey {
        /// The provider.
        name: String,
    },
    /// The HTTP client cannot be built.
    #[error("the HTTP client of provider {name} cannot be built")]
    Client {
        /// The provider.
        name: String,
        /// Why.
        source: reqwest::Error,
    },
}

/// A server that speaks the chat completions protocol.
#[derive(Clone, Debug)]
pub struct OpenAiProvider {
    client: Client,
    url: Url,
    origin: Origin,
    requests: Requests,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
}

impl OpenAiProvider {
    /// A provider as configured. Proxy variables of the environment hold for it, as they are now.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let url = endpoint(&settings)?;
        let client = Client::builder()
            .user_agent(concat!("hango/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers(&settings)?)
            .connect_timeout(settings.connect_timeout)
            .redirect(Policy::none())
            .build()
            .map_err(|source| SettingsError::Client {
                name: settings.name.clone(),
                source,
            })?;
        Ok(Self {
            client,
            requests: Requests::new(&settings.name, &url, settings.extra_body),
            url,
            origin: Origin {
                secrets: secrets(&settings.headers, settings.api_key),
                provider: settings.name,
                request_id: None,
            },
            first_byte_timeout: settings.first_byte_timeout,
            idle_timeout: settings.idle_timeout,
        })
    }

    async fn send(&self, call: &ModelCall, first_byte: Instant) -> Result<Response, ModelFailure> {
        let request = self
            .client
            .post(self.url.clone())
            .json(&self.requests.body(call))
            .send();
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
        let body = wire::text(response.bytes_stream(), origin.clone(), patience);
        let body = timeout(self.idle_timeout, body).await;
        origin.refused(
            status,
            &headers,
            &body.ok().and_then(Result::ok).unwrap_or_default(),
        )
    }

    fn unavailable(&self, message: &str) -> ModelFailure {
        self.origin.failure(ModelFailureKind::Unavailable, message)
    }
}

#[async_trait]
impl Provider for OpenAiProvider {
    fn kind(&self) -> &'static str {
        "openai"
    }

    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let patience = Patience {
            first_byte: Instant::now() + self.first_byte_timeout,
            idle: self.idle_timeout,
        };
        let response = self.send(&call, patience.first_byte).await?;
        let origin = Origin {
            request_id: header(&response, "x-request-id"),
            ..self.origin.clone()
        };
        if !response.status().is_success() {
            return Err(self.refusal(response, &origin).await);
        }
        let content_type = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        let body = response.bytes_stream();
        let mut mapping = Mapping::new(origin.clone(), call.model);
        if content_type.contains("json") || content_type.contains("html") {
            let text = wire::text(body, origin.clone(), patience).await?;
            if is_html(&text) {
                let message = "answered with a page instead of a stream";
                return Err(origin.failure(ModelFailureKind::Unavailable, message));
            }
            let mut events = Vec::new();
            mapping.whole(&text, &mut events)?;
            return Ok(stream::iter(events).map(Ok).boxed());
        }
        Ok(wire::answer(body, origin, patience, mapping).boxed())
    }
}

fn endpoint(settings: &Settings) -> Result<Url, SettingsError> {
    let mut url = settings.base_url.clone();
    let is_http = matches!(url.scheme(), "http" | "https");
    match url.path_segments_mut() {
        Ok(mut path) if is_http => {
            path.pop_if_empty().extend(["chat", "completions"]);
        }
        Ok(_) | Err(()) => {
            return Err(SettingsError::BaseUrl {
                name: settings.name.clone(),
            });
        }
    }
    Ok(url)
}

fn headers(settings: &Settings) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(key) = &settings.api_key {
        let mut bearer =
            HeaderValue::try_from(format!("Bearer {}", key.expose_secret())).map_err(|_| {
                SettingsError::ApiKey {
                    name: settings.name.clone(),
                }
            })?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    headers.extend(settings.headers.clone());
    Ok(headers)
}

/// What a server must not bring into a log by quoting its client.
fn secrets(headers: &HeaderMap, api_key: Option<SecretString>) -> Vec<SecretString> {
    let sensitive = headers.values().filter(|value| value.is_sensitive());
    let sensitive = sensitive.filter_map(|value| Some(value.to_str().ok()?.into()));
    sensitive.chain(api_key).collect()
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

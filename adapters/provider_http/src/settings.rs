//! How an operator configures a provider.

use std::time::Duration;

use http::HeaderMap;
use secrecy::SecretString;
use serde_json::{Map, Value};
use thiserror::Error;
use url::Url;

/// How an operator configured the provider.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name in the configuration; failures and [`ProviderData`] name it.
    ///
    /// [`ProviderData`]: hango_domain::conversation::ProviderData
    pub name: String,
    /// Where the API is; the protocol says what stands behind it.
    pub base_url: Url,
    /// `None` sends none.
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

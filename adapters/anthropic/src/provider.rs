//! The provider: what its requests look like, and one call.

use async_trait::async_trait;
use hango_domain::model::{ModelCall, ModelFailure};
use hango_ports::Provider;
use hango_ports::provider::{AnswerStream, ServerAddress};
use hango_provider_http::{Protocol, Remote, Settings, SettingsError};

use crate::mapping::Mapping;
use crate::quirk::Quirk;
use crate::request::Requests;

const PROTOCOL: Protocol = Protocol {
    path: &["v1", "messages"],
    key: ("x-api-key", ""),
    headers: &[("anthropic-version", "2023-06-01")],
    request_id: "request-id",
};

/// A server that speaks the Messages API.
#[derive(Clone, Debug)]
pub struct AnthropicProvider {
    remote: Remote,
    requests: Requests,
}

impl AnthropicProvider {
    /// A provider as configured. Its base URL holds no version: `https://api.anthropic.com`.
    pub fn new(settings: Settings, quirks: &[Quirk]) -> Result<Self, SettingsError> {
        Ok(Self {
            remote: Remote::new(&settings, &PROTOCOL)?,
            requests: Requests::new(&settings.name, settings.extra_body, quirks),
        })
    }
}

#[async_trait]
impl Provider for AnthropicProvider {
    fn kind(&self) -> &'static str {
        "anthropic"
    }

    fn server(&self) -> Option<ServerAddress> {
        self.remote.server()
    }

    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let body = self.requests.body(&call);
        let mapping = |origin| Mapping::new(origin, call.model);
        self.remote.ask(&body, mapping).await
    }
}

//! The provider: what its requests look like, and one call.

use async_trait::async_trait;
use hango_domain::model::{ModelCall, ModelFailure};
use hango_ports::Provider;
use hango_ports::provider::AnswerStream;
use hango_provider_http::{Protocol, Remote, Settings, SettingsError};

use crate::mapping::Mapping;
use crate::request::Requests;

/// The base URL holds the API's version, as `https://api.openai.com/v1` does.
const PROTOCOL: Protocol = Protocol {
    path: &["chat", "completions"],
    key: ("authorization", "Bearer "),
    headers: &[],
    request_id: "x-request-id",
};

/// A server that speaks the chat completions protocol.
#[derive(Clone, Debug)]
pub struct OpenAiProvider {
    remote: Remote,
    requests: Requests,
}

impl OpenAiProvider {
    /// A provider as configured. Its base URL holds the API's version: `https://api.openai.com/v1`.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let remote = Remote::new(&settings, &PROTOCOL)?;
        Ok(Self {
            requests: Requests::new(&settings.name, remote.url(), settings.extra_body),
            remote,
        })
    }
}

#[async_trait]
impl Provider for OpenAiProvider {
    fn kind(&self) -> &'static str {
        "openai"
    }

    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let body = self.requests.body(&call);
        let mapping = |origin| Mapping::new(origin, call.model);
        self.remote.ask(&body, mapping).await
    }
}

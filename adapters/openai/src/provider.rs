//! The provider: what its requests look like, and one call.

use async_trait::async_trait;
use hango_domain::model::{ModelCall, ModelFailure};
use hango_ports::Provider;
use hango_ports::provider::{AnswerStream, ServerAddress};
use hango_provider_http::{Protocol, Remote, Settings, SettingsError};

use crate::api::Api;
use crate::chat;
use crate::quirk::Quirk;
use crate::responses;

/// What both protocols have in common. The base URL holds the API's version, as
/// `https://api.openai.com/v1` does.
const fn protocol(path: &'static [&'static str]) -> Protocol {
    Protocol {
        path,
        key: ("authorization", "Bearer "),
        headers: &[],
        request_id: "x-request-id",
    }
}

/// A server that speaks one of OpenAI's protocols.
#[derive(Clone, Debug)]
pub struct OpenAiProvider {
    remote: Remote,
    requests: Requests,
}

/// Writes requests in one of the protocols.
#[derive(Clone, Debug)]
enum Requests {
    Chat(chat::Requests),
    Responses(responses::Requests),
}

impl OpenAiProvider {
    /// A provider as configured. Its base URL holds the API's version: `https://api.openai.com/v1`.
    pub fn new(settings: Settings, api: Api, quirks: &[Quirk]) -> Result<Self, SettingsError> {
        match api {
            Api::ChatCompletions => {
                let remote = Remote::new(&settings, &protocol(&["chat", "completions"]))?;
                let requests =
                    chat::Requests::new(&settings.name, remote.url(), settings.extra_body, quirks);
                Ok(Self {
                    remote,
                    requests: Requests::Chat(requests),
                })
            }
            Api::Responses => {
                let remote = Remote::new(&settings, &protocol(&["responses"]))?;
                let requests =
                    responses::Requests::new(&settings.name, settings.extra_body, quirks);
                Ok(Self {
                    remote,
                    requests: Requests::Responses(requests),
                })
            }
        }
    }
}

#[async_trait]
impl Provider for OpenAiProvider {
    fn kind(&self) -> &'static str {
        "openai"
    }

    fn server(&self) -> Option<ServerAddress> {
        self.remote.server()
    }

    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure> {
        match &self.requests {
            Requests::Chat(requests) => {
                let body = requests.body(&call);
                let mapping = |origin| requests.mapping(origin, call);
                self.remote.ask(&body, mapping).await
            }
            Requests::Responses(requests) => {
                let body = requests.body(&call);
                let mapping = |origin| responses::Mapping::new(origin, call.model);
                self.remote.ask(&body, mapping).await
            }
        }
    }
}

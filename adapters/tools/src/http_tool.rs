//! A tool of an operator's own: an HTTP service that gets the arguments and answers with the result.
//!
//! * One `POST` a call: the arguments as JSON, and in headers the key that is the same on every try of
//!   the call, the run, the call's id and the run's `traceparent`. Those headers are hango's own; an
//!   operator's of the same name gives way.
//! * Arguments are checked against the tool's parameters first; a mismatch is an error result.
//! * 2xx is the result: the body, or the fields `for_llm`, `for_user` and `is_error` of a JSON body that
//!   has a `for_llm`. Anything else, a redirect included, is an error result with the status and the
//!   beginning of the body, in which the values of an operator's headers are not shown.
//! * The time limit holds for the whole call, the size limit for the body; more is left out with a note.
//!
//! What may happen to a call in doubt is the operator's to say: only he knows what his service does. What
//! keeps a service from being reached is in his log; a model is told that much and no more.
//! Dropping the future closes the connection; what the service then does is its own affair.

mod answer;
mod secrets;

use std::fmt::Write;
use std::time::Duration;

use async_trait::async_trait;
use hango_domain::tool::{
    Idempotency, Invocation, Tool, ToolDef, ToolFailure, ToolResult, is_tool_name,
};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;
use url::Url;

use self::secrets::Secrets;
use crate::arguments::Arguments;

/// How an operator configured a tool.
#[derive(Clone, Debug)]
pub struct HttpToolSettings {
    /// Its name; 1 to 64 letters, digits, `_` and `-`.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// Where the service is; models never see it.
    pub url: Url,
    /// What may happen to a call that a crash left in doubt.
    pub idempotency: Idempotency,
    /// How long a call may take, from the connection to the last byte.
    pub timeout: Duration,
    /// Sent with every call; their values are treated as secrets.
    pub headers: HeaderMap,
    /// A JSON Schema object of its arguments.
    pub parameters: Value,
    /// How many bytes of an answer become a result.
    pub max_output_bytes: usize,
}

/// Why there is no such tool.
#[derive(Debug, Error)]
pub enum HttpToolError {
    /// Some provider would not take its name.
    #[error("{name:?} is not a tool's name: 1 to 64 letters, digits, '_' and '-'")]
    Name {
        /// The name.
        name: String,
    },
    /// The URL is not one of HTTP.
    #[error("the URL of tool {name} is not an http or https address")]
    Url {
        /// The tool.
        name: String,
    },
    /// The parameters are no JSON Schema of an object.
    #[error("the parameters of tool {name} are not a JSON Schema of an object: {reason}")]
    Parameters {
        /// The tool.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// The HTTP client cannot be built.
    #[error("the HTTP client of tool {name} cannot be built")]
    Client {
        /// The tool.
        name: String,
        /// Why.
        source: reqwest::Error,
    },
}

/// A tool that an operator's HTTP service executes.
///
/// Its [`Idempotency`] is what its operator says of the service, because nobody else knows what a second
/// call would do there: `safe` if it only reads, `keyed` if it does nothing twice for one `idempotency-key`,
/// else `unsafe`.
#[derive(Debug)]
pub struct HttpTool {
    definition: ToolDef,
    url: Url,
    idempotency: Idempotency,
    timeout: Duration,
    headers: HeaderMap,
    arguments: Arguments,
    max_output_bytes: usize,
    client: Client,
}

impl HttpTool {
    /// A tool as configured. Proxy variables of the environment hold for it, as they are now.
    pub fn new(settings: HttpToolSettings) -> Result<Self, HttpToolError> {
        let name = settings.name;
        if !is_tool_name(&name) {
            return Err(HttpToolError::Name { name });
        }
        if !matches!(settings.url.scheme(), "http" | "https") {
            return Err(HttpToolError::Url { name });
        }
        let arguments = match Arguments::new(&settings.parameters) {
            Ok(arguments) => arguments,
            Err(reason) => return Err(HttpToolError::Parameters { name, reason }),
        };
        let client = Client::builder()
            .user_agent(concat!("hango/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .build();
        let client = match client {
            Ok(client) => client,
            Err(source) => return Err(HttpToolError::Client { name, source }),
        };
        let mut headers = settings.headers;
        for value in headers.values_mut() {
            value.set_sensitive(true);
        }
        Ok(Self {
            definition: ToolDef {
                name,
                description: settings.description,
                parameters: settings.parameters,
            },
            url: settings.url,
            idempotency: settings.idempotency,
            timeout: settings.timeout,
            headers,
            arguments,
            max_output_bytes: settings.max_output_bytes,
            client,
        })
    }

    async fn call(&self, invocation: &Invocation) -> ToolResult {
        match self.send(invocation).await {
            Ok(response) => {
                let secrets = Secrets::of(&self.headers);
                let result = answer::result(response, self.max_output_bytes, &secrets).await;
                result.unwrap_or_else(|broken| self.broken(broken.told, &broken.source))
            }
            Err(error) => self.broken("the tool's service could not be reached".to_owned(), &error),
        }
    }

    /// A failure on the way, told to the model without its cause, which may name hosts of the operator's.
    fn broken(&self, told: String, error: &reqwest::Error) -> ToolResult {
        let (tool, cause) = (&self.definition.name, cause(error));
        tracing::warn!(tool, cause, "{told}");
        ToolResult::error(told)
    }

    async fn send(&self, invocation: &Invocation) -> Result<Response, reqwest::Error> {
        self.client
            .post(self.url.clone())
            .headers(self.headers(invocation))
            .body(Value::Object(invocation.input.clone()).to_string())
            .send()
            .await
    }

    fn headers(&self, invocation: &Invocation) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let run = invocation.run.to_string();
        for (name, text) in [
            ("idempotency-key", &invocation.idempotency_key),
            ("x-hango-run-id", &run),
            ("x-hango-tool-call-id", &invocation.tool_use_id),
            ("traceparent", &invocation.traceparent),
        ] {
            headers.insert(name, header_value(text));
        }
        headers
    }
}

#[async_trait]
impl Tool for HttpTool {
    fn definition(&self) -> ToolDef {
        self.definition.clone()
    }

    fn idempotency(&self) -> Idempotency {
        self.idempotency
    }

    async fn execute(&self, invocation: Invocation) -> ToolResult {
        if let Err(mismatches) = self.arguments.check(&invocation.input) {
            return ToolResult::failed(ToolFailure::InvalidArgs, mismatches);
        }
        match timeout(self.timeout, self.call(&invocation)).await {
            Ok(result) => result,
            Err(_) => ToolResult::failed(
                ToolFailure::Timeout,
                format!(
                    "the tool's service did not answer within {:?}; whether it did its work is unknown",
                    self.timeout
                ),
            ),
        }
    }
}

/// A text that a model may have chosen, as a header: what no header can carry is percent-encoded.
fn header_value(text: &str) -> HeaderValue {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() {
            safe.push(char::from(byte));
        } else {
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    HeaderValue::try_from(safe).expect("graphic characters make a header")
}

/// What lies beneath a failed request; the address, which may hold a secret, is not in it.
fn cause(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes
        .last()
        .map_or_else(|| "the request failed".to_owned(), ToString::to_string)
}

//! A client of the API.

use std::time::Duration;

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use super::home::KEY;
use super::until::until;

/// A client with a key.
#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
    base: String,
    key: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: u16,
    /// Its content type.
    pub(crate) content_type: String,
    /// The header `Location`.
    pub(crate) location: Option<String>,
    /// The header `Retry-After`.
    pub(crate) retry_after: Option<String>,
    /// The header `Idempotency-Replayed`.
    pub(crate) replayed: Option<String>,
    /// Its body; null if there is none.
    pub(crate) body: Value,
}

impl Api {
    /// A client of the server at `address`, with the key that every start makes sure of.
    pub(crate) fn of(address: &str) -> Self {
        // Fails when another test was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(70));
        Self {
            client: client.build().expect("a client can be built"),
            base: format!("http://{address}"),
            key: Some(KEY.to_owned()),
        }
    }

    /// The same client with another key, or none.
    pub(crate) fn with_key(&self, key: Option<&str>) -> Self {
        Self {
            key: key.map(str::to_owned),
            ..self.clone()
        }
    }

    /// A request with a body of any kind.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Result<Answer, reqwest::Error> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if !body.is_empty() {
            request = request.header("content-type", content_type).body(body);
        }
        Answer::of(request.send().await?).await
    }

    /// `POST` with an `Idempotency-Key`.
    pub(crate) async fn post_once(
        &self,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Result<Answer, reqwest::Error> {
        let mut request = self.client.post(format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let request = request.header("idempotency-key", key).json(body);
        Answer::of(request.send().await?).await
    }

    async fn json(&self, method: Method, path: &str, body: String) -> Answer {
        self.send(method, path, "application/json", body)
            .await
            .expect("the server answers")
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.json(Method::GET, path, String::new()).await
    }

    /// `POST`.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::POST, path, body.to_string()).await
    }

    /// `PATCH`.
    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::PATCH, path, body.to_string()).await
    }

    /// `DELETE`.
    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.json(Method::DELETE, path, String::new()).await
    }

    /// Makes the agent that tests use.
    pub(crate) async fn create_agent(&self) {
        let agent = json!({"slug": "agent", "provider": "openai", "model": "test"});
        self.post("/v1/agents", &agent).await.expect(201);
    }

    /// Opens a session; its id.
    pub(crate) async fn open_session(&self) -> String {
        let answer = self.post("/v1/sessions", &json!({"agent": "agent"})).await;
        text(&answer.expect(201)["id"])
    }

    /// Starts a run; its id.
    pub(crate) async fn start_run(&self, session: &str, input: &str) -> String {
        let path = format!("/v1/sessions/{session}/runs");
        let answer = self.post(&path, &json!({"input": input})).await;
        text(&answer.expect(202)["id"])
    }

    /// A run as it is now.
    pub(crate) async fn run(&self, run: &str) -> Value {
        self.get(&format!("/v1/runs/{run}")).await.expect(200)
    }

    /// A run that has ended.
    pub(crate) async fn ended(&self, run: &str) -> Value {
        until("the run ends", async || {
            let answer = self.get(&format!("/v1/runs/{run}?wait_ms=2000")).await;
            Some(answer.expect(200)).filter(has_ended)
        })
        .await
    }

    /// A run's journal.
    pub(crate) async fn tool_calls(&self, run: &str) -> Vec<Value> {
        let answer = self.get(&format!("/v1/runs/{run}/tool-calls")).await;
        list(&answer.expect(200))
    }

    /// A session's messages.
    pub(crate) async fn messages(&self, session: &str) -> Vec<Value> {
        let path = format!("/v1/sessions/{session}/messages?limit=200");
        list(&self.get(&path).await.expect(200))
    }

    /// Asks for a run's end.
    pub(crate) async fn cancel(&self, run: &str) -> Value {
        let answer = self
            .post(&format!("/v1/runs/{run}/cancel"), &json!({}))
            .await;
        answer.expect(202)
    }
}

impl Answer {
    async fn of(response: Response) -> Result<Self, reqwest::Error> {
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let (content_type, location) = (header("content-type"), header("location"));
        let retry_after = header("retry-after");
        let replayed = header("idempotency-replayed");
        let status = response.status().as_u16();
        let body = response.text().await?;
        Ok(Self {
            status,
            content_type: content_type.unwrap_or_default(),
            location,
            retry_after,
            replayed,
            body: serde_json::from_str(&body).unwrap_or(Value::String(body)),
        })
    }

    /// The body, if the status is that one.
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:#?}");
        self.body
    }
}

/// A text of a body.
pub(crate) fn text(value: &Value) -> String {
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

/// The entries of a list.
pub(crate) fn list(body: &Value) -> Vec<Value> {
    // Some lists come whole, others by page.
    let entries = body.get("data").unwrap_or(body).as_array();
    entries
        .unwrap_or_else(|| panic!("{body} is no list"))
        .clone()
}

/// Whether a run has ended.
pub(crate) fn has_ended(run: &Value) -> bool {
    matches!(
        run["state"].as_str(),
        Some("succeeded" | "failed" | "cancelled")
    )
}

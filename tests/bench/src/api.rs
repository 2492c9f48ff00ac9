//! A client of the API that keeps its connections.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::hango::KEY;
use crate::provider::Model;

/// How long a run may take; the API's own limit for one wait.
const LONGEST: &str = "60000";

/// A client.
#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
    base: String,
}

impl Api {
    /// A client of the server at `address`.
    pub(crate) fn of(address: &str) -> anyhow::Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .pool_idle_timeout(None)
            .timeout(Duration::from_secs(90))
            .build()?;
        Ok(Self {
            client,
            base: format!("http://{address}"),
        })
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.base);
        let mut request = self.client.request(method, &url).bearer_auth(KEY);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(status.is_success(), "{url}: {status} {text}");
        serde_json::from_str(&text).with_context(|| format!("{url} answered {text}"))
    }

    /// Makes the agent of a model.
    pub(crate) async fn create_agent(&self, model: Model) -> anyhow::Result<()> {
        let body = json!({"slug": model.to_string(), "provider": "openai",
                          "model": model.to_string(), "tools": ["get_time"]});
        self.send(Method::POST, "/v1/agents", Some(body)).await?;
        Ok(())
    }

    /// Opens a session with a model; its id.
    pub(crate) async fn open_session(&self, model: Model) -> anyhow::Result<String> {
        let body = json!({"agent": model.to_string()});
        let session = self.send(Method::POST, "/v1/sessions", Some(body)).await?;
        id(&session)
    }

    /// Starts a run; its id.
    pub(crate) async fn start_run(&self, session: &str) -> anyhow::Result<String> {
        let path = format!("/v1/sessions/{session}/runs");
        let body = json!({"input": "What time is it?"});
        id(&self.send(Method::POST, &path, Some(body)).await?)
    }

    /// Waits until a run has succeeded.
    pub(crate) async fn succeeded(&self, run: &str) -> anyhow::Result<()> {
        let path = format!("/v1/runs/{run}?wait_ms={LONGEST}");
        let run = self.send(Method::GET, &path, None).await?;
        if run["state"] != "succeeded" {
            bail!("a run did not succeed: {run:#}");
        }
        Ok(())
    }

    /// Asks for a run's end.
    pub(crate) async fn cancel(&self, run: &str) -> anyhow::Result<()> {
        let path = format!("/v1/runs/{run}/cancel");
        self.send(Method::POST, &path, Some(json!({}))).await?;
        Ok(())
    }

    /// Starts a run and waits for its end; how long that took.
    pub(crate) async fn run(&self, session: &str) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let run = self.start_run(session).await?;
        self.succeeded(&run).await?;
        Ok(begun.elapsed())
    }
}

fn id(body: &Value) -> anyhow::Result<String> {
    let id = body["id"].as_str();
    Ok(id.with_context(|| format!("{body} has no id"))?.to_owned())
}

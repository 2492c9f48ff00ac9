//! The team's server as its users have it: hango's command line, configuration, log and API, and what the
//! team brought.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const KEY: &str = "hk_teamteamteam_0123456789abcdef0123456789abcdef";

/// The longest that anything may take, on a busy machine.
const BOUND: Duration = Duration::from_secs(30);

/// The program in a directory of its own, with nothing of the tests' environment.
fn server(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hango-own-server"));
    command
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("HANGO_LISTEN", "127.0.0.1:0")
        .env("HANGO_BOOTSTRAP_API_KEY", KEY)
        // How runs ended is logged at this level.
        .env("HANGO_LOG", "debug")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn home() -> TempDir {
    tempfile::tempdir().expect("there is room for a directory")
}

async fn line(out: &mut Lines<BufReader<ChildStdout>>) -> String {
    let read = timeout(BOUND, out.next_line()).await.expect("in time");
    read.expect("it is text").expect("the server runs")
}

/// A client of the server.
struct Api {
    client: Client,
    base: String,
}

impl Api {
    fn at(base: &str) -> Self {
        // Fails when another test was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().timeout(BOUND);
        Self {
            client: client.build().expect("a client can be built"),
            base: base.to_owned(),
        }
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", self.base));
        let answer = request.bearer_auth(KEY).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        answer.expect("200").json().await.expect("it is JSON")
    }

    /// Makes something; its id.
    async fn post(&self, path: &str, body: &Value) -> String {
        let request = self.client.post(format!("{}{path}", self.base));
        let answer = request.bearer_auth(KEY).json(body).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        let made: Value = answer.expect("2xx").json().await.expect("it is JSON");
        made["id"].as_str().expect("an id").to_owned()
    }
}

/// Ends it as an operator does.
async fn terminated(mut process: Child) -> (Option<i32>, String) {
    let pid = process.id().expect("it runs").to_string();
    let sent = Command::new("kill").args(["-s", "TERM", &pid]).status();
    assert!(sent.await.expect("there is a kill program").success());
    let mut log = String::new();
    let mut pipe = process.stderr.take().expect("it is piped");
    let read = timeout(BOUND, pipe.read_to_string(&mut log)).await;
    read.expect("in time").expect("it is text");
    let status = process.wait().await.expect("it ends");
    (status.code(), log)
}

#[tokio::test]
async fn a_run_is_executed_with_what_the_team_brought() {
    let home = home();
    let mut process = server(home.path(), &["serve"]).spawn().expect("it starts");
    let mut out = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let listening = line(&mut out).await;
    let api = Api::at(
        listening
            .strip_prefix("listening on ")
            .expect("its address"),
    );

    let agent = json!({"slug": "shop", "provider": "house", "model": "any"});
    api.post("/v1/agents", &agent).await;
    let session = api.post("/v1/sessions", &json!({"agent": "shop"})).await;
    let runs = format!("/v1/sessions/{session}/runs");
    let run = api
        .post(&runs, &json!({"input": "When are you open?"}))
        .await;
    let run = api.get(&format!("/v1/runs/{run}?wait_ms=20000")).await;

    assert_eq!(run["state"], "succeeded", "{run:#}");
    let messages = api.get(&format!("/v1/sessions/{session}/messages")).await;
    let answer = &messages["data"][3]["content"][0]["text"];
    assert_eq!(answer, "We are open from nine to five.", "{messages:#}");
    assert_eq!(line(&mut out).await, "a run has succeeded");
    let (status, log) = terminated(process).await;
    assert_eq!(status, Some(0), "{log}");
    // The team passes on what hango's own telemetry logs, and has its log for the rest.
    for said in ["run.ended", "stopped"] {
        assert!(log.contains(said), "no {said} in {log}");
    }
}

#[tokio::test]
async fn a_configured_name_that_the_team_took_is_wrong_with_the_configuration() {
    let home = home();
    let config = "[providers.house]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    std::fs::write(home.path().join("hango.toml"), config).expect("it can be written");

    let ended = server(home.path(), &["serve"])
        .output()
        .await
        .expect("it starts");

    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    let place = "provider house of this binary: there is already a provider \"house\"";
    assert!(said.contains(place), "{said}");
    assert!(!home.path().join("hango-data").exists());
}

#[tokio::test]
async fn what_the_team_brought_is_shown_with_the_configuration() {
    let home = home();

    let ended = server(home.path(), &["config"])
        .output()
        .await
        .expect("it starts");

    let said = String::from_utf8_lossy(&ended.stdout);
    for line in [
        "provider demo (scripted)",
        "provider house (scripted, of this binary)",
        "tool opening_hours (of this binary)",
    ] {
        assert!(said.lines().any(|it| it == line), "no {line} in {said}");
    }
}

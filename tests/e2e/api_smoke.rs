//! The API over the real binary: one pass through what there is, and the shape of its refusals.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::api::{Api, list, text};
use super::support::gate::Gate;
use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn agents_sessions_messages_and_runs_work_from_end_to_end() {
    let world = World::start(&[], |_| Reply::text("all done")).await;
    let api = &world.api;
    let draft = json!({"slug": "clerk", "provider": "openai", "model": "m", "tools": ["safe"]});

    let made = api.post("/v1/agents", &draft).await;
    let location = made.location.clone().expect("there is a location");
    let agent = made.expect(201);
    assert_eq!(api.get(&location).await.expect(200), agent);
    assert_eq!(api.get("/v1/agents/clerk").await.expect(200), agent);
    let changed = api
        .patch("/v1/agents/clerk", &json!({"name": "Clerk"}))
        .await;
    assert_eq!(changed.expect(200)["version"], 2);
    assert_eq!(list(&api.get("/v1/agents").await.expect(200)).len(), 2);

    let session = api
        .post("/v1/sessions", &json!({"agent": "clerk", "title": "t"}))
        .await;
    let session = text(&session.expect(201)["id"]);
    let path = format!("/v1/sessions/{session}");
    let renamed = api.patch(&path, &json!({"title": "new"})).await;
    assert_eq!(renamed.expect(200)["title"], "new");
    let said = api
        .post(
            &format!("{path}/messages"),
            &json!({"content": "mind this"}),
        )
        .await;
    assert_eq!(said.expect(201)["seq"], 1);

    let accepted = api
        .post(&format!("{path}/runs"), &json!({"input": "hello"}))
        .await;
    let location = accepted.location.clone().expect("there is a location");
    let run = accepted.expect(202);
    assert_eq!(location, format!("/v1/runs/{}", text(&run["id"])));
    assert_eq!(text(&run["trace_id"]).len(), 32);
    let ended = api
        .get(&format!("{location}?wait_ms=30000"))
        .await
        .expect(200);
    assert_eq!(ended["state"], "succeeded", "{ended:#}");
    assert_eq!(ended["agent_version"], 2);
    assert_eq!(
        list(&api.get("/v1/runs?state=succeeded").await.expect(200)).len(),
        1
    );
    assert_eq!(
        list(&api.get(&format!("{path}/runs")).await.expect(200)).len(),
        1
    );
    let roles: Vec<_> = api.messages(&session).await;
    let roles: Vec<_> = roles.iter().map(|message| text(&message["role"])).collect();
    assert_eq!(roles, ["user", "user", "assistant"]);

    assert_eq!(
        api.delete(&path).await.expect(204),
        Value::String(String::new())
    );
    api.get(&path).await.expect(404);
    api.get(&location).await.expect(404);
    api.delete("/v1/agents/clerk").await.expect(204);
    let refused = api.post("/v1/sessions", &json!({"agent": "clerk"})).await;
    assert_eq!(refused.expect(409)["code"], "agent_archived");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_run_ends_with_its_time_and_a_busy_session_says_so() {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |_: &Ask| Reply::text("all done").held_after(1, &held);
    let world = World::start(&[("HANGO_MAX_QUEUED_RUNS_PER_SESSION", "2")], model).await;
    let run = world.start_run("one").await;

    let waited = world
        .api
        .get(&format!("/v1/runs/{}?wait_ms=200", run.id))
        .await;
    assert_eq!(waited.expect(200)["finished_at"], Value::Null);
    let runs = format!("/v1/sessions/{}/runs", run.session);
    let rejected = world
        .api
        .post(&runs, &json!({"input": "x", "on_busy": "reject"}))
        .await;
    assert_eq!(rejected.expect(409)["code"], "session_busy");
    world.start_run_in(&run.session, "two").await;
    let full = world.api.post(&runs, &json!({"input": "three"})).await;
    assert_eq!(full.expect(429)["code"], "too_many_queued_runs");
    let interrupting = json!({"input": "instead", "on_busy": "interrupt"});
    let instead = text(&world.api.post(&runs, &interrupting).await.expect(202)["id"]);
    gate.open();

    assert_eq!(world.api.ended(&instead).await["state"], "succeeded");
    for run in world.accepted() {
        assert_eq!(world.api.ended(&run.id).await["state"], "cancelled");
    }
    history::check(&world).await;
}

/// Checks that an answer is a problem document of that status and code.
async fn refuses(api: &Api, request: (Method, &str, &str, &str), status: u16, code: &str) {
    let (method, path, content_type, body) = request;
    let answer = api.send(method, path, content_type, body.to_owned()).await;
    let answer = answer.expect("the server answers");
    assert_eq!(answer.status, status, "{path} {answer:#?}");
    assert_eq!(answer.content_type, "application/problem+json", "{path}");
    assert_eq!(answer.body["code"], code, "{path} {answer:#?}");
    assert_eq!(answer.body["status"], status, "{path}");
    assert!(answer.body["request_id"].is_string(), "{path} {answer:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_a_problem_document() {
    let world = World::start(&[], |_| Reply::text("all done")).await;
    let session = world.api.open_session().await;
    let runs = format!("/v1/sessions/{session}/runs");
    let json = "application/json";
    let nobody = "/v1/runs/01890000-0000-7000-8000-000000000000";
    let cases = [
        ((Method::GET, nobody, json, ""), 404, "not_found"),
        ((Method::GET, "/v1/runs/42", json, ""), 404, "not_found"),
        ((Method::GET, "/v1/nowhere", json, ""), 404, "not_found"),
        (
            (Method::PUT, "/v1/agents", json, "{}"),
            405,
            "method_not_allowed",
        ),
        (
            (Method::POST, "/v1/agents", json, "{"),
            400,
            "malformed_json",
        ),
        (
            (Method::POST, "/v1/agents", "text/plain", "{}"),
            415,
            "unsupported_media_type",
        ),
        ((Method::POST, "/v1/agents", json, "{}"), 422, "validation"),
        (
            (Method::POST, &runs, json, r#"{"input": ""}"#),
            422,
            "validation",
        ),
        (
            (Method::POST, &runs, json, r#"{"input": "a", "x": 1}"#),
            422,
            "validation",
        ),
        (
            (Method::GET, "/v1/runs?limit=0", json, ""),
            422,
            "validation",
        ),
        (
            (Method::GET, "/v1/runs?cursor=no", json, ""),
            400,
            "invalid_cursor",
        ),
    ];
    for (request, status, code) in cases {
        refuses(&world.api, request, status, code).await;
    }
    let wrong = format!("{}x", super::support::home::KEY);
    for key in [None, Some("hk_nonsense"), Some(wrong.as_str())] {
        let stranger = world.api.with_key(key);
        let request = (Method::GET, "/v1/agents", json, "");
        refuses(&stranger, request, 401, "unauthenticated").await;
    }
}

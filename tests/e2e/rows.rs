//! What models, agents and callers try that is not theirs to do, on the real process.

use serde_json::{Value, json};

use super::support::api::{list, text};
use super::support::gate::Gate;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::until::until_true;
use super::support::world::{Plan, World};

on_both_stores! {
    d13_who_loses_his_role_loses_what_it_let_him_run
    d11_what_two_ids_name_has_to_belong_together
    d15_what_has_ended_is_not_ended_again
    d47_the_trail_tells_who_was_refused_and_holds_no_content
}

/// A provider's secret.
const SECRET: &str = "sk-do-not-tell-anybody";

async fn on(kind: Kind) -> World {
    let idle = |_: &Ask| Reply::text("done");
    Plan::on(kind, &[]).await.start(idle).await
}

async fn d13_who_loses_his_role_loses_what_it_let_him_run(kind: Kind) {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |ask: &Ask| match ask.turn {
        1 => Reply::calls([("safe", json!({"n": 1}))]).held_before_end(&held),
        _ => Reply::text("this is not to be asked for"),
    };
    let world = Plan::on(kind, &[]).await.start(model).await;
    let session = world.api.open_session().await;
    let key = user_key(&world, "admin").await;
    let admin = world.api.with_key(Some(&key));
    let run = admin.start_run(&session, "one").await;
    until_true("the model is asked", || !world.provider.asked().is_empty()).await;

    let me = admin.get("/v1/me").await.expect(200);
    let user = format!("/v1/users/{}", text(&me["user"]["id"]));
    let role = json!({"role": "member"});
    world.api.patch(&user, &role).await.expect(200);
    gate.open();

    let ended = world.api.ended(&run).await;
    assert_eq!(ended["state"], "failed", "{ended:#}");
    assert_eq!(ended["error"]["code"], "creator_inactive");
    assert_eq!(world.provider.asked().len(), 1);
    admin.get(&format!("/v1/runs/{run}")).await.expect(404);
}

async fn d11_what_two_ids_name_has_to_belong_together(kind: Kind) {
    let world = on(kind).await;
    let (one, two) = (world.start_run("one").await, world.start_run("two").await);
    for run in [&one, &two] {
        world.api.ended(&run.id).await;
    }
    let listed = async |path: String| list(&world.api.get(&path).await.expect(200));

    for (session, run, count) in [
        (&one.session, &one.id, 2),
        (&one.session, &two.id, 0),
        (&two.session, &one.id, 0),
    ] {
        let of_run = listed(format!("/v1/sessions/{session}/messages?run_id={run}")).await;
        assert_eq!(of_run.len(), count, "{of_run:?}");
        let in_session = listed(format!("/v1/sessions/{session}/runs")).await;
        let is_there = in_session.iter().any(|it| it["id"] == **run);
        assert_eq!(is_there, count > 0);
    }
}

async fn d15_what_has_ended_is_not_ended_again(kind: Kind) {
    let world = on(kind).await;
    let run = world.start_run("one").await;
    let ended = world.api.ended(&run.id).await;
    assert_eq!(ended["state"], "succeeded");
    for _ in 0..2 {
        let cancel = format!("/v1/runs/{}/cancel", run.id);
        let refused = world.api.post(&cancel, &json!({})).await.expect(409);
        assert_eq!(refused["code"], "run_ended");
    }
    assert_eq!(world.api.run(&run.id).await, ended);
}

async fn d47_the_trail_tells_who_was_refused_and_holds_no_content(kind: Kind) {
    let world = on(kind).await;
    let api = &world.api;
    let run = world.start_run("do not write this down").await;
    api.ended(&run.id).await;
    let cancel = format!("/v1/runs/{}/cancel", run.id);
    api.post(&cancel, &json!({})).await.expect(409);
    let agent = json!({"slug": "agent", "provider": "openai", "model": "not this either"});
    api.post("/v1/agents", &agent).await.expect(409);

    let me = api.get("/v1/me").await.expect(200);
    let trail = api.get("/v1/audit-events?limit=200").await.expect(200);

    let told = trail.to_string();
    for content in ["not write this", "not this either", "done"] {
        assert!(!told.contains(content), "{told}");
    }
    let rows = list(&trail);
    let refused: Vec<_> = rows.iter().filter(|row| row["status"] == 409).collect();
    let actions: Vec<_> = refused.iter().map(|row| &row["action"]).collect();
    assert_eq!(actions, ["agent.create", "run.cancel"]);
    for row in refused {
        assert_eq!(row["actor_id"], me["user"]["id"]);
        assert_eq!(row["api_key_id"], me["api_key"]["id"]);
    }
    let key = user_key(&world, "member").await;
    let member = api.with_key(Some(&key));
    let answer = member.get("/v1/audit-events").await.expect(403);
    assert_eq!(answer["code"], "forbidden");
}

/// A key of a new user of that role.
async fn user_key(world: &World, role: &str) -> String {
    let email = format!("{role}@example.com");
    let user = json!({"email": email, "name": role, "role": role});
    let user = world.api.post("/v1/users", &user).await.expect(201);
    let key = json!({"name": "test", "user_id": user["id"]});
    text(&world.api.post("/v1/api-keys", &key).await.expect(201)["key"])
}

#[tokio::test(flavor = "multi_thread")]
async fn d39_a_form_of_another_page_changes_nothing() {
    let world = on(Kind::Sqlite).await;
    let body = json!({"agent": "agent"}).to_string();
    for media in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
    ] {
        let post = reqwest::Method::POST;
        let sent = world.api.send(post, "/v1/sessions", media, body.clone());
        let refused = sent.await.expect("the server answers").expect(415);
        assert_eq!(refused["code"], "unsupported_media_type");
    }
    let sessions = world.api.get("/v1/sessions").await.expect(200);
    assert_eq!(list(&sessions), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn d45_a_tool_is_called_by_its_name_to_the_letter_and_only_if_the_agent_has_it() {
    let names = [
        "SAFE",
        "Safe",
        "sa fe",
        "s\u{430}fe",
        "\u{ff53}afe",
        "keyed",
        "http_fetch",
        "no_such_tool",
    ];
    let world = Plan::on(Kind::Sqlite, &[])
        .await
        .start(move |ask| match ask.turn {
            1 => Reply::calls(names.map(|name| (name, json!({"n": 1})))),
            2 => Reply::calls([("safe", json!({"n": 1}))]),
            _ => Reply::text("all done"),
        })
        .await;
    let api = &world.api;
    let tools = json!({"tools": ["safe"]});
    api.patch("/v1/agents/agent", &tools).await.expect(200);

    let run = world.start_run("one").await;

    let ended = api.ended(&run.id).await;
    assert_eq!(ended["state"], "succeeded", "{ended:#}");
    let calls = api.tool_calls(&run.id).await;
    let told: Vec<_> = calls.iter().map(|call| text(&call["name"])).collect();
    assert!(told.iter().eq(names.iter().chain(&["safe"])), "{told:?}");
    for call in &calls {
        assert_eq!(call["is_error"], call["name"] != "safe", "{call:#}");
    }
    let called: Vec<_> = world.tools.calls().into_iter().map(|it| it.tool).collect();
    assert_eq!(called, ["safe"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn d46_d49_an_agent_names_no_address_and_nobody_reads_a_providers_secret() {
    let settings = [("OPENAI_API_KEY", SECRET), ("HANGO_LOG", "trace")];
    let mut world = Plan::on(Kind::Sqlite, &settings)
        .await
        .start(|_| Reply::text("done"))
        .await;
    let api = world.api.clone();
    for field in [
        "base_url",
        "api_key",
        "api_key_env",
        "headers",
        "extra_body",
    ] {
        let patch = json!({field: "x"});
        let refused = api.patch("/v1/agents/agent", &patch).await.expect(422);
        assert_eq!(refused["errors"][0]["code"], "unknown_field", "{refused:#}");
    }
    for (field, value, code) in [
        ("tools", json!(["shell"]), "unknown_tool"),
        ("provider", json!("nobody"), "unknown_provider"),
        ("system_prompt", json!("a\u{0}b"), "invalid_text"),
        (
            "limits",
            json!({"max_iterations": 1_000_000}),
            "limit_too_large",
        ),
    ] {
        let patch = json!({field: value});
        let refused = api.patch("/v1/agents/agent", &patch).await.expect(422);
        assert_eq!(refused["errors"][0]["code"], code, "{refused:#}");
    }
    let run = world.start_run("one").await;
    assert_eq!(api.ended(&run.id).await["state"], "succeeded");
    for path in [
        "/v1/providers",
        "/v1/agents/agent",
        "/v1/tools",
        "/openapi.json",
    ] {
        let told = api.get(path).await.expect(200).to_string();
        assert!(!told.contains(SECRET), "{path}: {told}");
    }
    let logged = world.hango().logged();
    assert!(!logged.contains(SECRET), "{logged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d51_a_plan_that_is_too_large_is_refused_and_the_run_goes_on() {
    let many: Vec<_> = (0..20_000)
        .map(|n| json!({"content": format!("{n}"), "status": "pending"}))
        .collect();
    let long = json!([{"content": "x".repeat(1_000_000), "status": "pending"}]);
    let world = Plan::on(Kind::Sqlite, &[])
        .await
        .start(move |ask| match ask.turn {
            1 => Reply::calls([("write_todos", json!({"todos": many}))]),
            2 => Reply::calls([("write_todos", json!({"todos": long}))]),
            _ => Reply::text("all done"),
        })
        .await;
    let run = world.start_run("one").await;

    let ended = world.api.ended(&run.id).await;

    assert_eq!(ended["state"], "succeeded", "{ended:#}");
    assert_eq!(ended["todos"], json!([]));
    let calls = world.api.tool_calls(&run.id).await;
    assert_eq!(calls.len(), 2);
    assert!(
        calls.iter().all(|call| call["is_error"] == true),
        "{calls:#?}"
    );
    let messages = world.api.messages(&run.session).await;
    let results = messages.iter().filter(|it| it["role"] == "user").skip(1);
    for result in results {
        assert!(
            result.to_string().len() < 64 * 1024,
            "what refuses it is short"
        );
    }
}

//! What a caller may not see does not exist.

use hango_domain::access::Role;
use http::Method;
use serde_json::json;

use crate::support::Server;

const NEVER_ISSUED: &str = "0199a000-0000-7000-8000-00000000ffff";

/// Every call that names something, with a body that would be good for it.
fn calls(
    agent: &str,
    session: &str,
    run: &str,
) -> Vec<(Method, String, Option<serde_json::Value>)> {
    let session = format!("/v1/sessions/{session}");
    let run = format!("/v1/runs/{run}");
    let agent = format!("/v1/agents/{agent}");
    vec![
        (Method::GET, agent.clone(), None),
        (Method::PATCH, agent.clone(), Some(json!({"name": "x"}))),
        (Method::DELETE, agent, None),
        (Method::GET, session.clone(), None),
        (Method::PATCH, session.clone(), Some(json!({"title": "x"}))),
        (Method::DELETE, session.clone(), None),
        (Method::GET, format!("{session}/messages"), None),
        (
            Method::POST,
            format!("{session}/messages"),
            Some(json!({"content": "x"})),
        ),
        (Method::GET, format!("{session}/runs"), None),
        (
            Method::POST,
            format!("{session}/runs"),
            Some(json!({"input": "x"})),
        ),
        (Method::GET, run.clone(), None),
        (Method::GET, format!("{run}?wait_ms=60000"), None),
        (Method::GET, format!("{run}/tool-calls"), None),
        (Method::GET, format!("{run}/explain"), None),
        (Method::POST, format!("{run}/cancel"), None),
    ]
}

async fn answers(
    server: &Server,
    key: &str,
    calls: Vec<(Method, String, Option<serde_json::Value>)>,
) -> Vec<String> {
    let mut answers = Vec::new();
    for (method, path, body) in calls {
        let mut call = server
            .call(method, &path)
            .key(key)
            .header("x-request-id", "same");
        if let Some(body) = body {
            call = call.json(&body);
        }
        let answer = call.send().await;
        answer.is_problem(404, "not_found");
        answers.push(answer.text);
    }
    answers
}

#[tokio::test]
async fn another_tenants_things_are_answered_like_ids_that_were_never_issued() {
    let server = Server::start().await;
    let agent = server.agent(&server.owner, "helper").await;
    let session = server.session(&server.owner, "helper").await;
    let run = server.run(&server.owner, &session).await;
    let id = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let agent = agent["id"].as_str().unwrap();

    let foreign = calls(agent, &id(&session), &id(&run));
    let foreign = answers(&server, &server.stranger, foreign).await;

    let random = calls(NEVER_ISSUED, NEVER_ISSUED, NEVER_ISSUED);
    assert_eq!(foreign, answers(&server, &server.stranger, random).await);
}

#[tokio::test]
async fn a_malformed_id_is_one_that_was_never_issued() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server
        .run(&server.owner, &session)
        .await
        .replace("/v1/runs/", "");
    let long = "a".repeat(10_000);
    let upper = run.to_uppercase();
    let braced = format!("%7B{run}%7D");
    let simple = run.replace('-', "");
    let nil = "00000000-0000-0000-0000-000000000000";
    let expected = answers(
        &server,
        &server.owner,
        calls(NEVER_ISSUED, NEVER_ISSUED, NEVER_ISSUED),
    )
    .await;

    for id in [
        "not-a-uuid",
        "%00",
        "%ff",
        "..",
        nil,
        &long,
        &upper,
        &braced,
        &simple,
    ] {
        let given = answers(&server, &server.owner, calls(id, id, id)).await;
        assert_eq!(given, expected, "{id}");
    }
}

#[tokio::test]
async fn a_member_works_only_on_sessions_that_he_created() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    let id = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let on_session = calls("x", &id(&session), &id(&run)).split_off(3);

    let hidden = answers(&server, &server.member, on_session).await;
    assert_eq!(hidden.len(), 12);
    for list in ["/v1/sessions", "/v1/runs"] {
        let list = server.get(&server.member, list).await;
        assert_eq!(list.body["data"], json!([]));
    }

    let own = server.session(&server.member, "helper").await;
    let run = server.run(&server.member, &own).await;
    assert_eq!(server.get(&server.member, &run).await.status, 200);
    let other = server.another("other@example.org", Role::Member).await;
    server.get(&other, &run).await.is_problem(404, "not_found");
    let admin = server.another("admin@example.org", Role::Admin).await;
    assert_eq!(server.get(&admin, &run).await.status, 200);
}

#[tokio::test]
async fn a_filter_by_what_is_not_the_callers_gives_an_empty_list() {
    let server = Server::start().await;
    let agent = server.agent(&server.owner, "helper").await;
    let session = server.session(&server.owner, "helper").await;
    server.run(&server.owner, &session).await;
    let session = session.rsplit('/').next().unwrap();
    let agent = agent["id"].as_str().unwrap();

    for path in [
        format!("/v1/runs?session_id={session}"),
        format!("/v1/runs?agent={agent}"),
        "/v1/runs?agent=helper".to_owned(),
        format!("/v1/sessions?agent={agent}"),
        "/v1/sessions?agent=helper".to_owned(),
    ] {
        let list = server.get(&server.stranger, &path).await;
        assert_eq!(
            list.body,
            json!({"data": [], "next_cursor": null}),
            "{path}"
        );
    }
}

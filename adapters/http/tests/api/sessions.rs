//! Sessions and their messages.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn a_session_is_made_with_an_agents_slug_or_id() {
    let server = Server::start().await;
    let agent = server.agent(&server.owner, "helper").await;
    for name in [&agent["slug"], &agent["id"]] {
        let body = json!({"agent": name, "title": "T", "metadata": {"k": 1}});

        let made = server.post(&server.member, "/v1/sessions", body).await;

        assert_eq!(made.status, 201);
        let location = format!("/v1/sessions/{}", made.id());
        assert_eq!(made.header("location"), location);
        assert_eq!(made.body["agent_id"], agent["id"]);
        assert_eq!(made.body["title"], "T");
        assert_eq!(made.body["metadata"], json!({"k": 1}));
        assert_eq!(server.get(&server.member, &location).await.body, made.body);
    }
}

#[tokio::test]
async fn a_session_needs_an_agent_that_is_there_and_not_archived() {
    let server = Server::start().await;
    server.agent(&server.owner, "old").await;
    server.delete(&server.owner, "/v1/agents/old").await;
    server.agent(&server.stranger, "theirs").await;
    let create = async |body| server.post(&server.owner, "/v1/sessions", body).await;

    for agent in [
        "nobody",
        "theirs",
        "NO SLUG",
        "0199a000-0000-7000-8000-00000000ffff",
    ] {
        let answer = create(json!({"agent": agent})).await;
        answer.is_invalid(&[("/agent", "unknown_agent")]);
    }
    let both = create(json!({"agent": "nobody", "title": 1})).await;
    both.is_invalid(&[("/agent", "unknown_agent"), ("/title", "invalid_type")]);
    create(json!({}))
        .await
        .is_invalid(&[("/agent", "required")]);
    create(json!({"agent": "old"}))
        .await
        .is_problem(409, "agent_archived");
}

#[tokio::test]
async fn a_change_replaces_what_it_gives() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    server
        .patch(
            &server.owner,
            &session,
            json!({"title": "T", "metadata": {"a": 1, "b": 2}}),
        )
        .await;

    let changed = server
        .patch(&server.owner, &session, json!({"metadata": {"a": 3}}))
        .await;

    assert_eq!(changed.status, 200);
    assert_eq!(changed.body["title"], "T");
    assert_eq!(changed.body["metadata"], json!({"a": 3}));
}

#[tokio::test]
async fn sessions_are_found_by_agent_and_creator() {
    let server = Server::start().await;
    server.agent(&server.owner, "a").await;
    server.agent(&server.owner, "b").await;
    let with_a = server.session(&server.owner, "a").await;
    let with_b = server.session(&server.member, "b").await;
    let ids = async |filter: &str| {
        let list = server
            .get(&server.owner, &format!("/v1/sessions?{filter}"))
            .await;
        let data = list.body["data"].as_array().unwrap().clone();
        let path = |id: &str| format!("/v1/sessions/{id}");
        data.iter()
            .map(|it| path(it["id"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    let me = server.get(&server.member, "/v1/me").await;
    let member = me.body["user"]["id"].as_str().unwrap();

    assert_eq!(ids("agent=a").await, std::slice::from_ref(&with_a));
    assert_eq!(ids(&format!("created_by={member}")).await, [with_b]);
    assert!(
        ids(&format!("agent=a&created_by={member}"))
            .await
            .is_empty()
    );
    assert!(ids("agent=nobody").await.is_empty());
    assert!(
        ids("created_by=0199a000-0000-7000-8000-00000000ffff")
            .await
            .is_empty()
    );
    for (filter, pointer) in [
        ("agent=NO%20SLUG", "/agent"),
        ("created_by=me", "/created_by"),
    ] {
        let answer = server
            .get(&server.owner, &format!("/v1/sessions?{filter}"))
            .await;
        answer.is_invalid(&[(pointer, "invalid_format")]);
    }
}

#[tokio::test]
async fn a_removed_session_takes_everything_under_it_along() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    let busy = server.delete(&server.owner, &session).await;
    busy.is_problem(409, "session_busy");
    server
        .post(&server.owner, &format!("{run}/cancel"), json!({}))
        .await;

    assert_eq!(server.delete(&server.owner, &session).await.status, 204);

    for path in [
        &session,
        &format!("{session}/messages"),
        &format!("{session}/runs"),
        &run,
    ] {
        server
            .get(&server.owner, path)
            .await
            .is_problem(404, "not_found");
    }
    server
        .delete(&server.owner, &session)
        .await
        .is_problem(404, "not_found");
}

#[tokio::test]
async fn a_message_is_text_or_text_blocks_and_says_something() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let messages = format!("{session}/messages");
    let append = async |content| {
        server
            .post(&server.owner, &messages, json!({"content": content}))
            .await
    };

    let made = append(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])).await;
    assert_eq!(made.status, 201);
    let expected = json!({
        "id": made.body["id"], "session_id": made.body["session_id"], "run_id": null, "seq": 1,
        "role": "user", "stop_reason": null, "usage": null, "partial": false,
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "created_at": made.body["created_at"],
    });
    assert_eq!(made.body, expected);

    append(json!([])).await.is_invalid(&[("/content", "empty")]);
    append(json!(" \n"))
        .await
        .is_invalid(&[("/content", "empty")]);
    append(json!(7))
        .await
        .is_invalid(&[("/content", "invalid_type")]);
    let mixed = append(json!([
        {"type": "text", "text": ""},
        {"type": "tool_result", "text": "x"},
        {"type": "text"},
        {"type": "text", "text": "x", "provider_data": {}},
        "text",
    ]));
    mixed.await.is_invalid(&[
        ("/content/0/text", "empty"),
        ("/content/1/type", "invalid_format"),
        ("/content/2/text", "required"),
        ("/content/3/provider_data", "unknown_field"),
        ("/content/4", "invalid_type"),
    ]);
}

#[tokio::test]
async fn no_message_is_appended_while_a_run_is_running() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    let messages = format!("{session}/messages");
    let lease = server.claim().await;
    assert_eq!(format!("/v1/runs/{}", lease.run), run);

    let busy = server
        .post(&server.owner, &messages, json!({"content": "x"}))
        .await;

    busy.is_problem(409, "session_busy");
    let list = server
        .get(&server.owner, &format!("{messages}?run_id={}", lease.run))
        .await;
    assert_eq!(
        list.body["data"][0]["content"],
        json!([{"type": "text", "text": "hello"}])
    );
    let id = server
        .run(&server.owner, &session)
        .await
        .replace("/v1/runs/", "");
    let none = server
        .get(&server.owner, &format!("{messages}?run_id={id}"))
        .await;
    assert_eq!(none.body["data"], json!([]));
}

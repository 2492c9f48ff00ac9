//! `Idempotency-Key`: a request that is repeated with its key is answered as it was first.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hango_domain::retention::ANSWERS_KEPT;
use hango_ports::idempotency::Repeated;
use hango_ports::session_store::MockSessionStore;
use hango_ports::{StoreFailure, Stores};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Server};

/// Posts with a key.
async fn post(server: &Server, by: &str, path: &str, key: &str, body: &Value) -> Answer {
    let call = server.call(Method::POST, path).key(by);
    call.header("idempotency-key", key).json(body).send().await
}

/// How many audit rows the tenant has.
async fn rows(server: &Server) -> usize {
    let page = hango_ports::page::PageRequest {
        limit: 1000,
        after: None,
    };
    let filter = hango_ports::audit_store::AuditFilter::default();
    let rows = server.stores.audit.list(server.tenant, filter, page).await;
    rows.unwrap().items.len()
}

#[track_caller]
fn is_replay(again: &Answer, first: &Answer) {
    assert_eq!(again.status, first.status);
    assert_eq!(again.text, first.text);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(first.header("idempotency-replayed"), "");
    assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    let mut headers = again.headers.clone();
    headers.remove("idempotency-replayed");
    headers.insert("x-request-id", first.headers["x-request-id"].clone());
    assert_eq!(headers, first.headers);
}

#[tokio::test]
async fn d35_a_repeated_run_is_answered_as_it_was_first() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let runs = format!("{session}/runs");
    let body = json!({"input": "hello", "metadata": {"z": 0.1, "a": [1e300, -0.0, 9_007_199_254_740_993_u64]}});
    let first = post(&server, &server.owner, &runs, "k", &body).await;
    assert_eq!(first.status, 202, "{first:?}");
    let run = first.header("location").to_owned();
    let cancelled = server
        .post(&server.owner, &format!("{run}/cancel"), json!({}))
        .await;
    assert_eq!(cancelled.body["state"], "cancelled");
    let before = rows(&server).await;

    let again = post(&server, &server.owner, &runs, "k", &body).await;

    is_replay(&again, &first);
    assert_eq!(again.body["state"], "queued");
    assert_eq!(rows(&server).await, before);
    let list = server.get(&server.owner, &runs).await;
    assert_eq!(list.body["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn d35_a_repeated_session_or_message_is_answered_as_it_was_first() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let messages = format!("{session}/messages");
    let said = json!({"content": "by the way"});
    let made = json!({"agent": "helper", "title": "T"});
    let message = post(&server, &server.owner, &messages, "k", &said).await;
    let another = post(&server, &server.owner, "/v1/sessions", "k", &made).await;
    assert_eq!(
        (message.status, another.status),
        (201.try_into().unwrap(), 201.try_into().unwrap())
    );
    let location = another.header("location").to_owned();
    server
        .patch(&server.owner, &location, json!({"title": "U"}))
        .await;
    let before = rows(&server).await;
    let session_again = async || post(&server, &server.owner, "/v1/sessions", "k", &made).await;
    let message_again = async || post(&server, &server.owner, &messages, "k", &said).await;
    is_replay(&session_again().await, &another);
    is_replay(&message_again().await, &message);
    assert_eq!(rows(&server).await, before);

    for path in [&location, &session] {
        assert_eq!(server.delete(&server.owner, path).await.status, 204);
    }

    // What was in a session went with it; that one was made is still so.
    is_replay(&session_again().await, &another);
    let gone = message_again().await;
    gone.is_problem(404, "not_found");
}

#[tokio::test]
async fn d35_a_key_is_used_for_one_body() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let runs = format!("{session}/runs");
    let first = post(&server, &server.owner, &runs, "k", &json!({"input": "a"})).await;
    assert_eq!(first.status, 202);
    let before = rows(&server).await;

    let other = post(&server, &server.owner, &runs, "k", &json!({"input": "b"})).await;
    other.is_problem(422, "idempotency_key_reused");
    // The same to a reader of JSON, and other bytes.
    let call = server.call(Method::POST, &runs).key(&server.owner);
    let call = call.header("idempotency-key", "k");
    let call = call.header("content-type", "application/json");
    let spaced = call.body("{\"input\" : \"a\"}").send().await;
    spaced.is_problem(422, "idempotency_key_reused");

    // A refusal leaves a row, as any other.
    assert_eq!(rows(&server).await, before + 2);
}

#[tokio::test]
async fn d35_a_key_is_of_its_user_and_path() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    server.agent(&server.stranger, "helper").await;
    let body = json!({"agent": "helper"});
    let mut made = Vec::new();
    for by in [&server.owner, &server.member, &server.stranger] {
        let session = post(&server, by, "/v1/sessions", "k", &body).await;
        assert_eq!(session.status, 201, "{session:?}");
        let path = session.header("location").to_owned();
        for (list, body, status) in [
            ("messages", json!({"content": "x"}), 201),
            ("runs", json!({"input": "x"}), 202),
        ] {
            let thing = post(&server, by, &format!("{path}/{list}"), "k", &body).await;
            assert_eq!(thing.status, status, "{thing:?}");
            assert_eq!(thing.header("idempotency-replayed"), "");
            made.push(thing.id());
        }
        made.push(session.id());
    }
    let count = made.len();
    made.sort();
    made.dedup();
    assert_eq!(made.len(), count);
}

#[tokio::test]
async fn d35_a_key_is_at_most_255_visible_characters() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let body = json!({"agent": "helper"});
    for good in ["!", &"~".repeat(255), "a/b:c,d;e=\"f\""] {
        let made = post(&server, &server.owner, "/v1/sessions", good, &body).await;
        assert_eq!(made.status, 201, "{good}: {made:?}");
    }
    for bad in ["", &"k".repeat(256), "a b", "a\tb", "k\u{e9}"] {
        let refused = post(&server, &server.owner, "/v1/sessions", bad, &body).await;
        refused.is_invalid(&[("/idempotency-key", "invalid_format")]);
    }
    let call = server.call(Method::POST, "/v1/sessions").key(&server.owner);
    let twice = call
        .header("idempotency-key", "a")
        .header("idempotency-key", "a");
    let twice = twice.json(&body).send().await;
    twice.is_invalid(&[("/idempotency-key", "invalid_format")]);
    // All that is wrong is said at once.
    let worse = post(
        &server,
        &server.owner,
        "/v1/sessions",
        "",
        &json!({"title": 1}),
    )
    .await;
    worse.is_invalid(&[
        ("/agent", "required"),
        ("/idempotency-key", "invalid_format"),
        ("/title", "invalid_type"),
    ]);
}

#[tokio::test]
async fn d35_a_key_is_looked_at_behind_what_is_checked_first() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let runs = format!("{session}/runs");
    let body = json!({"input": "x"});
    let nowhere = "/v1/sessions/0199a000-0000-7000-8000-00000000ffff/runs";
    let used = post(&server, &server.owner, &runs, "k", &body).await;
    assert_eq!(used.status, 202);

    let nobody = post(&server, "hk_short", &runs, "k", &body).await;
    nobody.is_problem(401, "unauthenticated");
    let call = server.call(Method::POST, &runs).key(&server.owner);
    let call = call.header("idempotency-key", "");
    let broken = call
        .header("content-type", "application/json")
        .body("{")
        .send()
        .await;
    broken.is_problem(400, "malformed_json");
    for path in [nowhere, "/v1/sessions/malformed/runs"] {
        for key in ["", "k"] {
            let absent = post(&server, &server.owner, path, key, &body).await;
            absent.is_problem(404, "not_found");
        }
    }
    // Another's key tells nothing, and his session is not there.
    let foreign = post(&server, &server.stranger, &runs, "k", &body).await;
    foreign.is_problem(404, "not_found");
    // With a session goes what was answered of it.
    server
        .post(
            &server.owner,
            &format!("{}/cancel", used.header("location")),
            json!({}),
        )
        .await;
    assert_eq!(server.delete(&server.owner, &session).await.status, 204);
    for body in [&body, &json!({"input": "y"})] {
        let gone = post(&server, &server.owner, &runs, "k", body).await;
        gone.is_problem(404, "not_found");
    }
}

#[tokio::test]
async fn d35_what_was_refused_can_be_sent_again() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let runs = format!("{session}/runs");
    let body = json!({"input": "x", "on_busy": "reject"});
    let busy = server.run(&server.owner, &session).await;
    let blank = post(&server, &server.owner, &runs, "k", &json!({"input": " "})).await;
    blank.is_invalid(&[("/input", "empty")]);
    let refused = post(&server, &server.owner, &runs, "k", &body).await;
    refused.is_problem(409, "session_busy");
    server
        .post(&server.owner, &format!("{busy}/cancel"), json!({}))
        .await;

    let made = post(&server, &server.owner, &runs, "k", &body).await;

    assert_eq!(made.status, 202, "{made:?}");
    assert_eq!(made.header("idempotency-replayed"), "");
}

#[tokio::test]
async fn d35_fifty_posts_at_once_make_one_run() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let runs = format!("{session}/runs");
    let body = json!({"input": "x"});

    let posts = (0..50).map(|_| post(&server, &server.owner, &runs, "k", &body));
    let answers = join_all(posts).await;

    let new = answers
        .iter()
        .filter(|it| it.header("idempotency-replayed").is_empty());
    assert_eq!(new.count(), 1);
    for answer in &answers {
        assert_eq!(
            (answer.status.as_u16(), &answer.text),
            (202, &answers[0].text)
        );
    }
    let list = server.get(&server.owner, &runs).await;
    assert_eq!(list.body["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn d35_a_key_is_good_for_a_day() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let body = json!({"agent": "helper"});
    let first = post(&server, &server.owner, "/v1/sessions", "k", &body).await;
    server
        .clock
        .advance(ANSWERS_KEPT.saturating_sub(Duration::from_micros(1)));
    let again = post(&server, &server.owner, "/v1/sessions", "k", &body).await;
    is_replay(&again, &first);
    server.clock.advance(Duration::from_micros(1));

    let new = post(&server, &server.owner, "/v1/sessions", "k", &body).await;

    assert_eq!(new.status, 201);
    assert_ne!(new.id(), first.id());
}

#[tokio::test]
async fn d35_a_request_whose_first_is_in_flight_is_told_to_come_again() {
    let mut sessions = MockSessionStore::new();
    let in_flight = || Err(Repeated::InFlight.into());
    sessions
        .expect_create()
        .returning(move |_, _, _| in_flight());
    let server = over(sessions).await;

    let body = json!({"agent": "helper"});
    let answer = post(&server, &server.owner, "/v1/sessions", "k", &body).await;

    answer.is_problem(409, "idempotency_in_flight");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn who_may_not_act_any_more_is_answered_as_one_with_a_bad_key() {
    let mut sessions = MockSessionStore::new();
    let refused = || Err(StoreFailure::ActorRefused.into());
    sessions.expect_create().returning(move |_, _, _| refused());
    let server = over(sessions).await;
    let before = rows(&server).await;
    let body = json!({"agent": "helper"});
    let create = async |key: &str| {
        let call = server.call(Method::POST, "/v1/sessions").key(key);
        call.header("x-request-id", "same").json(&body).send().await
    };

    let (bad, refused) = (create("hk_short").await, create(&server.owner).await);

    refused.is_problem(401, "unauthenticated");
    assert_eq!((refused.headers, refused.text), (bad.headers, bad.text));
    assert_eq!(rows(&server).await, before);
}

/// The API over that store for sessions.
async fn over(sessions: MockSessionStore) -> Server {
    Server::over(|stores| Stores {
        sessions: Arc::new(sessions),
        ..stores
    })
    .await
}

//! Runs: accepted, read, waited for, cancelled.

use std::slice::from_ref;
use std::time::Duration;

use hango_ports::EventSink as _;
use hango_ports::audit_store::AuditFilter;
use hango_ports::event_sink::LiveEvent;
use hango_ports::page::PageRequest;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{MAX_QUEUED, Server};

#[tokio::test]
async fn an_accepted_run_is_queued_and_has_its_place_in_a_trace() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let me = server.get(&server.owner, "/v1/me").await;
    let body = json!({"input": "hello", "metadata": {"k": [1, null]}});

    let made = server
        .post(&server.owner, &format!("{session}/runs"), body)
        .await;

    assert_eq!(made.status, 202);
    let location = format!("/v1/runs/{}", made.id());
    assert_eq!(made.header("location"), location);
    let zero = json!({"input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0,
                      "cache_write_tokens": 0});
    let expected = json!({
        "id": made.body["id"],
        "tenant_id": server.tenant,
        "session_id": session.rsplit('/').next(),
        "agent_id": made.body["agent_id"],
        "agent_version": 1,
        "created_by": me.body["user"]["id"],
        "lane": "main",
        "state": "queued",
        "resume_turn": 0,
        "attempt": 0,
        "input": [{"type": "text", "text": "hello"}],
        "metadata": {"k": [1, null]},
        "error": null,
        "stop_reason": null,
        "iterations": 0,
        "usage": zero,
        "usage_discarded": zero,
        "final_message_id": null,
        "todos": [],
        "trace_id": "ab".repeat(16),
        "span_id": "cd".repeat(8),
        "cancel_requested_at": null,
        "started_at": null,
        "finished_at": null,
        "created_at": made.body["created_at"],
    });
    assert_eq!(made.body, expected);
    assert_eq!(server.get(&server.owner, &location).await.body, expected);
    let calls = server
        .get(&server.owner, &format!("{location}/tool-calls"))
        .await;
    assert_eq!(calls.body, json!({"data": [], "next_cursor": null}));
}

#[tokio::test]
async fn the_audit_row_of_a_run_names_its_trace_and_where_it_belongs() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let call = server
        .call(Method::POST, &format!("{session}/runs"))
        .key(&server.owner);
    let traced = call.header(
        "traceparent",
        &format!("00-{}-{}-01", "1".repeat(32), "2".repeat(16)),
    );
    let run = traced.json(&json!({"input": "hello"})).send().await;

    let page = PageRequest {
        limit: 1,
        after: None,
    };
    let filter = AuditFilter {
        action: Some("run.create".to_owned()),
        ..AuditFilter::default()
    };
    let rows = server.stores.audit.list(server.tenant, filter, page).await;
    let row = rows.unwrap().items.remove(0);

    assert_eq!(json!(row.target_id), run.body["id"]);
    assert_eq!(json!(row.trace_id), run.body["trace_id"]);
    assert_eq!((&*row.target_kind, row.status), ("run", 202));
    let detail = json!({
        "agent_id": run.body["agent_id"], "session_id": run.body["session_id"], "lane": "main",
    });
    assert_eq!(Value::Object(row.detail), detail);
}

#[tokio::test]
async fn a_runs_body_is_checked_as_a_whole_after_its_session() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let runs = format!("{session}/runs");
    let body = json!({"input": [], "on_busy": "wait", "metadata": 1, "lane": "fast", "state": "x"});

    let answer = server.post(&server.owner, &runs, body.clone()).await;

    answer.is_invalid(&[
        ("/input", "empty"),
        ("/lane", "unknown_field"),
        ("/metadata", "invalid_type"),
        ("/on_busy", "invalid_format"),
        ("/state", "unknown_field"),
    ]);
    let nowhere = "/v1/sessions/0199a000-0000-7000-8000-00000000ffff/runs";
    server
        .post(&server.owner, nowhere, body)
        .await
        .is_problem(404, "not_found");
}

#[tokio::test]
async fn pending_runs_of_a_session_are_capped() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    for _ in 0..MAX_QUEUED {
        server.run(&server.owner, &session).await;
    }
    let runs = format!("{session}/runs");

    let full = server
        .post(&server.owner, &runs, json!({"input": "x"}))
        .await;

    full.is_problem(429, "too_many_queued_runs");
    assert_eq!(full.header("retry-after"), "1");
    let list = server.get(&server.owner, &runs).await;
    assert_eq!(
        list.body["data"].as_array().unwrap().len(),
        MAX_QUEUED as usize
    );
}

#[tokio::test]
async fn on_busy_says_what_happens_to_a_run_behind_others() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let runs = format!("{session}/runs");
    let post = async |on_busy: &str| {
        let body = json!({"input": "x", "on_busy": on_busy});
        server.post(&server.owner, &runs, body).await
    };
    assert_eq!(post("reject").await.status, 202);
    post("reject").await.is_problem(409, "session_busy");
    let lease = server.claim().await;
    let queued = post("enqueue").await;

    let next = post("interrupt").await;

    assert_eq!(next.status, 202);
    let state = async |id: &str| {
        server
            .get(&server.owner, &format!("/v1/runs/{id}"))
            .await
            .body
    };
    assert_eq!(state(&queued.id()).await["state"], "cancelled");
    let running = state(&lease.run.to_string()).await;
    assert_eq!(running["state"], "running");
    assert!(running["cancel_requested_at"].is_string());
    assert_eq!(state(&next.id()).await["state"], "queued");
}

#[tokio::test]
async fn an_archived_agent_takes_no_new_runs() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    server.delete(&server.owner, "/v1/agents/helper").await;

    let refused = server
        .post(
            &server.owner,
            &format!("{session}/runs"),
            json!({"input": "x"}),
        )
        .await;

    refused.is_problem(409, "agent_archived");
}

#[tokio::test]
async fn a_queued_run_is_cancelled_at_once_and_a_running_one_asked_to_end() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let running = server.run(&server.owner, &session).await;
    server.claim().await;
    let queued = server.run(&server.owner, &session).await;
    let cancel = async |run: &str| {
        let call = server.call(Method::POST, &format!("{run}/cancel"));
        call.key(&server.owner).send().await
    };

    let ended = cancel(&queued).await;
    assert_eq!(
        (ended.status.as_u16(), &ended.body["state"]),
        (202, &json!("cancelled"))
    );
    assert_eq!(ended.body["error"], Value::Null);
    assert!(ended.body["finished_at"].is_string());
    cancel(&queued).await.is_problem(409, "run_ended");

    let asked = cancel(&running).await;
    assert_eq!(
        (asked.status.as_u16(), &asked.body["state"]),
        (202, &json!("running"))
    );
    assert!(asked.body["cancel_requested_at"].is_string());
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(cancel(&running).await.body, asked.body);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_run() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    let lease = server.claim().await;
    let begun = Instant::now();

    let path = format!("{run}?wait_ms=60000");
    let waiting = server.get(&server.owner, &path);
    let working = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let end = server.worker.finish(lease, 1);
        let written = server.stores.runs.finish(end).await.unwrap();
        server.live.emit(LiveEvent::Durable(written.events));
    };
    let (answer, ()) = tokio::join!(waiting, working);

    assert_eq!(answer.body["state"], "succeeded");
    assert_eq!(answer.body["stop_reason"], "end_turn");
    assert!(answer.body["final_message_id"].is_string());
    assert!(
        begun.elapsed() < Duration::from_millis(900),
        "the event was missed"
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_run_even_if_nobody_tells() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    let lease = server.claim().await;

    let path = format!("{run}?wait_ms=60000");
    let waiting = server.get(&server.owner, &path);
    let working = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let end = server.worker.finish(lease, 1);
        server.stores.runs.finish(end).await.unwrap();
    };
    let (answer, ()) = tokio::join!(waiting, working);

    assert_eq!(answer.body["state"], "succeeded");
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_its_time_is_over_or_the_process_drains() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;

    let timed = server
        .get(&server.owner, &format!("{run}?wait_ms=20"))
        .await;
    assert_eq!(timed.body["state"], "queued");

    let path = format!("{run}?wait_ms=60000");
    let waiting = server.get(&server.owner, &path);
    let drain = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.readiness.drain();
    };
    let (drained, ()) = tokio::join!(waiting, drain);
    assert_eq!(
        (drained.status.as_u16(), &drained.body["state"]),
        (200, &json!("queued"))
    );
}

#[tokio::test]
async fn a_wait_is_at_most_a_minute() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    for (wait, code) in [
        ("60001", "out_of_range"),
        ("-1", "out_of_range"),
        ("1s", "invalid_format"),
    ] {
        let answer = server
            .get(&server.owner, &format!("{run}?wait_ms={wait}"))
            .await;
        answer.is_invalid(&[("/wait_ms", code)]);
    }
}

#[tokio::test]
async fn runs_are_found_by_state_session_and_agent() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let running = server.run(&server.owner, &session).await;
    server.claim().await;
    let queued = server.run(&server.owner, &session).await;
    server.agent(&server.owner, "other").await;
    let elsewhere = server.session(&server.owner, "other").await;
    let other = server.run(&server.owner, &elsewhere).await;
    let paths = async |path: &str| {
        let list = server.get(&server.owner, path).await;
        let data = list.body["data"].as_array().unwrap().clone();
        let path = |id: &str| format!("/v1/runs/{id}");
        data.iter()
            .map(|it| path(it["id"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    let id = session.rsplit('/').next().unwrap();

    let all = [other.clone(), queued.clone(), running.clone()];
    assert_eq!(paths("/v1/runs").await, all);
    assert_eq!(paths("/v1/runs?state=running").await, from_ref(&running));
    assert_eq!(paths("/v1/runs?state=running&state=queued").await, all);
    assert_eq!(paths("/v1/runs?agent=other").await, from_ref(&other));
    let both = [queued.clone(), running];
    assert_eq!(paths(&format!("/v1/runs?session_id={id}")).await, both);
    assert_eq!(paths(&format!("{session}/runs")).await, both);
    assert_eq!(
        paths(&format!("{session}/runs?state=queued")).await,
        [queued]
    );
    assert!(
        paths(&format!("{elsewhere}/runs?session_id={id}"))
            .await
            .is_empty()
    );
    let wrong = server
        .get(&server.owner, "/v1/runs?state=done&session_id=x")
        .await;
    wrong.is_invalid(&[
        ("/session_id", "invalid_format"),
        ("/state", "invalid_format"),
    ]);
}

#[tokio::test]
async fn the_journal_tells_what_became_of_each_call() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    let lease = server.claim().await;
    let answer = server.worker.answer(lease, 1, 3, 2);
    server.stores.runs.answer(answer).await.unwrap();

    let calls = server
        .get(&server.owner, &format!("{run}/tool-calls"))
        .await;

    let data = calls.body["data"].as_array().unwrap();
    let states: Vec<_> = data
        .iter()
        .map(|call| call["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["started", "started", "pending"]);
    let expected = json!({
        "id": data[2]["id"], "tool_use_id": "call_1_3", "turn": 1, "position": 3,
        "name": "get_time", "state": "pending", "idempotency_key": data[2]["idempotency_key"],
        "executions": 0, "is_error": null, "started_at": null, "finished_at": null,
    });
    assert_eq!(data[2], expected);
    assert!(data[0]["started_at"].is_string() && data[2]["idempotency_key"].is_string());
}

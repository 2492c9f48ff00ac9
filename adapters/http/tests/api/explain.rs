//! Why a run is in its state.

use std::time::Duration;

use hango_conformance::{TTL, owner};
use hango_domain::RunId;
use hango_domain::run::{Change, Outcome, RunError, RunErrorCode};
use serde_json::{Value, json};

use crate::support::{MAX_RUNNING, Server};

async fn explained(server: &Server, run: &str) -> Value {
    let answer = server
        .get(&server.owner, &format!("/v1/runs/{run}/explain"))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

/// A run of the owner in that session; its id.
async fn run_in(server: &Server, session: &str) -> RunId {
    let body = json!({"input": "hello"});
    let made = server
        .post(&server.owner, &format!("{session}/runs"), body)
        .await;
    assert_eq!(made.status, 202, "{made:?}");
    made.id().parse().unwrap()
}

#[tokio::test]
async fn a_queued_run_has_a_place_and_a_running_one_a_holder() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let first = run_in(&server, &session).await;
    let second = run_in(&server, &session).await;
    let lease = server.worker.held(first, owner(1)).await;

    let running = explained(&server, &first.to_string()).await;
    let queued = explained(&server, &second.to_string()).await;

    let attempt = &running["attempts"][0];
    let expected = json!({
        "state": "running",
        "summary": running["summary"],
        "queue": null,
        "lease": {
            "owner_id": lease.owner,
            "attempt": 1,
            "expires_at": running["lease"]["expires_at"],
            "renewed_at": null,
        },
        "attempts": [{
            "attempt": 1,
            "owner_id": lease.owner,
            "started_at": attempt["started_at"],
            "ended_at": null,
            "cause": null,
        }],
        "available_at": null,
        "error": null,
    });
    assert_eq!(running, expected);
    assert!(attempt["started_at"].is_string() && running["lease"]["expires_at"].is_string());
    let expected = json!({
        "state": "queued",
        "summary": queued["summary"],
        "queue": {
            "position": 2,
            "blocked_by": first,
            "tenant_running": 1,
            "tenant_cap": MAX_RUNNING,
        },
        "lease": null,
        "attempts": [],
        "available_at": null,
        "error": null,
    });
    assert_eq!(queued, expected);
    let words = format!("run {first} of its session comes first.");
    assert!(queued["summary"].as_str().unwrap().ends_with(&words));
}

#[tokio::test]
async fn each_attempt_is_told_with_what_ended_it() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = run_in(&server, &session).await;
    let lease = server.worker.held(run, owner(1)).await;
    server.clock.advance(Duration::from_secs(10));
    let next = server.worker.taken_over(lease, owner(2)).await;
    let mut end = server.worker.finish(next, 1);
    end.turn = None;
    let error = RunError::new(RunErrorCode::DeadlineExceeded, "too late");
    end.outcome = Outcome::Failed(error);
    server.worker.written(Change::Finish(end)).await;

    let failed = explained(&server, &run.to_string()).await;

    let attempts = failed["attempts"].as_array().unwrap();
    let told = attempts.iter().map(|it| (&it["owner_id"], &it["cause"]));
    let (one, two) = (json!(owner(1)), json!(owner(2)));
    let causes = [json!("lease_expired"), json!("deadline_exceeded")];
    assert!(told.eq([(&one, &causes[0]), (&two, &causes[1])]));
    assert!(attempts.iter().all(|it| it["ended_at"].is_string()));
    let error = json!({"code": "deadline_exceeded", "message": "too late"});
    assert_eq!(
        (&failed["state"], &failed["error"]),
        (&json!("failed"), &error)
    );
    assert_eq!(
        (&failed["queue"], &failed["lease"]),
        (&Value::Null, &Value::Null)
    );
    let summary = failed["summary"].as_str().unwrap();
    assert!(
        summary.ends_with("as deadline_exceeded: its time was over."),
        "{summary}"
    );
}

#[tokio::test]
async fn a_renewal_and_a_wait_are_told_with_their_moments() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = run_in(&server, &session).await;
    let lease = server.worker.held(run, owner(1)).await;
    server.clock.advance(Duration::from_secs(10));
    let held = hango_ports::run_store::Held {
        run,
        attempt: lease.attempt,
    };
    let renewed = server.stores.runs.renew(lease.owner, vec![held], TTL).await;
    assert_eq!(renewed.unwrap().renewed.len(), 1);

    let running = explained(&server, &run.to_string()).await;
    let change = server.worker.give_back(lease, Duration::from_mins(1));
    server.worker.written(Change::GiveBack(change)).await;
    let waiting = explained(&server, &run.to_string()).await;

    assert!(running["lease"]["renewed_at"].is_string(), "{running:#}");
    assert_ne!(
        running["lease"]["renewed_at"],
        running["attempts"][0]["started_at"]
    );
    assert_eq!(waiting["queue"]["blocked_by"], "not_available");
    assert!(waiting["available_at"].is_string(), "{waiting:#}");
}

#[tokio::test]
async fn a_long_life_is_read_in_pieces() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = run_in(&server, &session).await;
    for _ in 0..300 {
        let lease = server.worker.held(run, owner(1)).await;
        let change = server.worker.give_back(lease, Duration::ZERO);
        server.worker.written(Change::GiveBack(change)).await;
    }

    let queued = explained(&server, &run.to_string()).await;

    let attempts = queued["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 100);
    assert_eq!(attempts.last().unwrap()["attempt"], 300);
    assert_eq!(queued["queue"]["blocked_by"], serde_json::Value::Null);
}

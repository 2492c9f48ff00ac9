//! What runs cost, as callers see it.

use std::time::Duration;

use hango_domain::conversation::Usage;
use hango_domain::run::{Change, End, Outcome};
use serde_json::{Value, json};

use crate::support::Server;

/// Two runs on two days, of which one succeeded and one was cancelled, and one that has not ended.
async fn worked() -> Server {
    let server = Server::start().await;
    let session = server.owners_session().await;
    server.run(&server.owner, &session).await;
    let lease = server.claim().await;
    let end = End {
        usage: Usage {
            input_tokens: 100,
            output_tokens: 20,
            cache_read_tokens: 30,
            cache_write_tokens: 5,
            estimated: false,
        },
        usage_discarded: Usage {
            input_tokens: 7,
            ..Usage::default()
        },
        ..End::new(lease, server.worker.write_id(), Outcome::Succeeded)
    };
    server.worker.written(Change::Finish(end)).await;
    server.clock.advance(Duration::from_hours(24));
    let run = server.run(&server.owner, &session).await;
    let cancel = format!("{run}/cancel");
    server.post(&server.owner, &cancel, json!({})).await;
    server.run(&server.owner, &session).await;
    server.clock.advance(Duration::from_hours(1));
    server
}

fn sum(succeeded: u64, cancelled: u64, factor: u64) -> Value {
    json!({
        "runs": {"succeeded": succeeded, "failed": 0, "cancelled": cancelled},
        "usage": {"input_tokens": 100 * factor, "output_tokens": 20 * factor,
                  "cache_read_tokens": 30 * factor, "cache_write_tokens": 5 * factor},
        "usage_discarded": {"input_tokens": 7 * factor, "output_tokens": 0,
                            "cache_read_tokens": 0, "cache_write_tokens": 0},
    })
}

fn of(key: &str, value: &Value, mut sum: Value) -> Value {
    sum[key] = value.clone();
    sum
}

#[tokio::test]
async fn usage_is_one_sum_or_one_for_each_group() {
    let server = worked().await;
    let me = server.get(&server.owner, "/v1/me").await.body;
    let agent = server.get(&server.owner, "/v1/agents/helper").await.body;
    let usage = async |query: &str| {
        let answer = server
            .get(&server.owner, &format!("/v1/usage{query}"))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };

    let all = usage("").await;
    assert_eq!(all["data"], json!([sum(1, 1, 1)]));
    assert_eq!(all["truncated"], false);
    let user = of("user_id", &me["user"]["id"], sum(1, 1, 1));
    assert_eq!(usage("?group_by=user").await["data"], json!([user]));
    let of_agent = of("agent_id", &agent["id"], sum(1, 1, 1));
    assert_eq!(usage("?group_by=agent").await["data"], json!([of_agent]));
    let days = usage("?group_by=day").await;
    let (first, last) = (&days["data"][0]["day"], &days["data"][1]["day"]);
    assert!(first.as_str() < last.as_str(), "{days:#}");
    let expected = [
        of("day", first, sum(1, 0, 1)),
        of("day", last, sum(0, 1, 0)),
    ];
    assert_eq!(days["data"], json!(expected));
    assert!(
        all["to"]
            .as_str()
            .unwrap()
            .starts_with(last.as_str().unwrap()),
        "{all:#}"
    );
}

#[tokio::test]
async fn a_period_without_runs_costs_nothing_and_another_tenants_runs_are_not_seen() {
    let server = worked().await;
    for path in [
        "/v1/usage?from=2001-01-01T00:00:00Z&to=2001-02-01T01:00:00%2B01:00",
        "/v1/usage",
    ] {
        let answer = server.get(&server.stranger, path).await;
        assert_eq!(answer.body["data"], json!([sum(0, 0, 0)]), "{answer:?}");
        let grouped = format!(
            "{path}{}group_by=day",
            if path.contains('?') { "&" } else { "?" }
        );
        assert_eq!(
            server.get(&server.stranger, &grouped).await.body["data"],
            json!([])
        );
    }
    let answer = server
        .get(
            &server.owner,
            "/v1/usage?from=2001-01-01T00:00:00Z&to=2001-02-01T01:00:00%2B01:00",
        )
        .await;
    assert_eq!(answer.body["from"], "2001-01-01T00:00:00.000000Z");
    assert_eq!(answer.body["to"], "2001-02-01T00:00:00.000000Z");
}

#[tokio::test]
async fn usage_is_for_those_who_administer_and_its_period_is_checked() {
    let server = worked().await;
    let refused = server.get(&server.member, "/v1/usage?from=x").await;
    refused.is_problem(403, "forbidden");
    for (query, pointer, code) in [
        ("from=yesterday", "/from", "invalid_format"),
        ("to=2026-13-01T00:00:00Z", "/to", "invalid_format"),
        ("to=2026-01-01", "/to", "invalid_format"),
        ("group_by=model", "/group_by", "invalid_format"),
        ("from=9999-01-01T00:00:00Z", "/from", "out_of_range"),
        (
            "from=2025-01-01T00:00:00Z&to=2025-01-01T00:00:00Z",
            "/from",
            "out_of_range",
        ),
        (
            "from=2024-01-01T00:00:00Z&to=2025-01-02T00:00:00Z",
            "/from",
            "out_of_range",
        ),
        ("groupby=day", "/groupby", "unknown_field"),
    ] {
        let answer = server
            .get(&server.owner, &format!("/v1/usage?{query}"))
            .await;
        answer.is_invalid(&[(pointer, code)]);
    }
    let year = "/v1/usage?from=2024-01-01T00:00:00Z&to=2025-01-01T00:00:00Z";
    assert_eq!(server.get(&server.owner, year).await.status, 200);
}

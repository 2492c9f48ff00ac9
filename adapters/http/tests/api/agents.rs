//! Agents, and what they can be made of.

use hango_ports::audit_store::AuditFilter;
use hango_ports::page::PageRequest;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Server};

#[tokio::test]
async fn an_agent_is_made_with_defaults_and_found_by_id_and_slug() {
    let server = Server::start().await;
    let body = json!({"slug": "helper", "provider": "demo", "model": "demo-1"});

    let made = server.post(&server.owner, "/v1/agents", body).await;

    assert_eq!(made.status, 201);
    assert_eq!(made.header("location"), format!("/v1/agents/{}", made.id()));
    let rest = json!({
        "slug": "helper", "name": "helper", "description": "", "version": 1, "provider": "demo",
        "model": "demo-1", "system_prompt": "", "tools": [], "max_tokens": null, "temperature": null,
        "limits": {"max_iterations": null, "tool_timeout_ms": null, "run_deadline_ms": null},
        "metadata": {}, "archived_at": null,
    });
    for (name, value) in rest.as_object().unwrap() {
        assert_eq!(&made.body[name], value, "{name}");
    }
    for name in [made.id(), "helper".to_owned()] {
        let found = server
            .get(&server.member, &format!("/v1/agents/{name}"))
            .await;
        assert_eq!((found.status.as_u16(), &found.body), (200, &made.body));
    }
}

#[tokio::test]
async fn a_slug_is_taken_even_by_an_archived_agent_and_only_in_its_tenant() {
    let server = Server::start().await;
    let body = json!({"slug": "helper", "provider": "demo", "model": "m"});
    let create = async |key: &str| server.post(key, "/v1/agents", body.clone()).await;
    assert_eq!(create(&server.owner).await.status, 201);
    create(&server.owner).await.is_problem(409, "slug_taken");
    let archived = server.delete(&server.owner, "/v1/agents/helper").await;
    assert_eq!((archived.status.as_u16(), &*archived.text), (204, ""));

    create(&server.owner).await.is_problem(409, "slug_taken");
    assert_eq!(create(&server.stranger).await.status, 201);
}

#[tokio::test]
async fn what_cannot_be_a_slug_is_refused() {
    let server = Server::start().await;
    let long = "s".repeat(64);
    for slug in [
        "",
        "-a",
        "A",
        "a b",
        "ü",
        &long,
        "0199a000-0000-7000-8000-000000000001",
    ] {
        let body = json!({"slug": slug, "provider": "demo", "model": "m"});
        let answer = server.post(&server.owner, "/v1/agents", body).await;
        answer.is_invalid(&[("/slug", "invalid_format")]);
    }
}

#[tokio::test]
async fn a_member_reads_agents_and_may_not_touch_them() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let member = &*server.member;

    let bad = json!({"zzz": 1});
    let refused: [Answer; 3] = [
        server.post(member, "/v1/agents", bad.clone()).await,
        server.patch(member, "/v1/agents/helper", bad.clone()).await,
        server.delete(member, "/v1/agents/helper").await,
    ];
    for answer in refused {
        answer.is_problem(403, "forbidden");
    }
    let nothing = server.patch(member, "/v1/agents/nobody", bad).await;
    nothing.is_problem(404, "not_found");
    assert_eq!(
        server.get(member, "/v1/agents").await.body["data"][0]["slug"],
        "helper"
    );
}

#[tokio::test]
async fn a_change_replaces_what_it_gives_and_counts_the_version_up() {
    let server = Server::start().await;
    let body = json!({
        "slug": "helper", "provider": "demo", "model": "m", "max_tokens": 100, "temperature": 0.5,
        "system_prompt": "Be brief.", "limits": {"max_iterations": 5},
    });
    let made = server.post(&server.owner, "/v1/agents", body).await;

    let change = json!({"name": "Helper", "max_tokens": null, "tools": ["get_time"], "limits": {}});
    let changed = server
        .patch(&server.owner, "/v1/agents/helper", change)
        .await;

    let mut expected = made.body.clone();
    expected["name"] = json!("Helper");
    expected["version"] = json!(2);
    expected["max_tokens"] = Value::Null;
    expected["tools"] = json!(["get_time"]);
    expected["limits"]["max_iterations"] = Value::Null;
    expected["updated_at"] = changed.body["updated_at"].clone();
    assert_eq!(changed.body, expected);
    let slug = server
        .patch(&server.owner, "/v1/agents/helper", json!({"slug": "other"}))
        .await;
    slug.is_invalid(&[("/slug", "unknown_field")]);
}

#[tokio::test]
async fn more_tokens_than_can_be_kept_are_refused_and_not_made_fewer() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let change = async |most: u64| {
        let body = json!({"max_tokens": most});
        server.patch(&server.owner, "/v1/agents/helper", body).await
    };

    assert_eq!(
        change(4_294_967_295).await.body["max_tokens"],
        4_294_967_295_u32
    );
    let refused = change(4_294_967_296).await;
    refused.is_invalid(&[("/max_tokens", "out_of_range")]);
}

#[tokio::test]
async fn an_agent_shows_its_layers_as_they_are_set_defaults_filled_in() {
    let server = Server::start().await;
    let set = |todo: bool, repeat_call: bool, threshold: u32| {
        json!({
            "todo": {"enabled": todo},
            "repeat_call": {"enabled": repeat_call, "threshold": threshold},
        })
    };
    server.agent(&server.owner, "helper").await;
    let found = server.get(&server.member, "/v1/agents/helper").await;
    assert_eq!(found.body["middleware"], set(true, true, 3));

    for (given, shown) in [
        (json!({"todo": {"enabled": false}}), set(false, true, 3)),
        (json!({"repeat_call": {"threshold": 5}}), set(true, true, 5)),
        (
            json!({"repeat_call": {"enabled": false}}),
            set(true, false, 3),
        ),
        (json!({"todo": {}}), set(true, true, 3)),
        (json!({}), set(true, true, 3)),
    ] {
        let change = json!({"middleware": given});
        let changed = server
            .patch(&server.owner, "/v1/agents/helper", change)
            .await;
        let found = server.get(&server.member, "/v1/agents/helper").await;
        let listed = server.get(&server.member, "/v1/agents").await;

        assert_eq!(changed.body["middleware"], shown, "{given}");
        assert_eq!(found.body, changed.body);
        assert_eq!(listed.body["data"][0], changed.body);
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_layers_settings_is_said_with_its_place() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;

    for (middleware, expected) in [
        (
            json!({"todo": {"threshold": 3}, "repeat_call": {"threshold": 1}}),
            vec![
                ("/middleware/repeat_call/threshold", "out_of_range"),
                ("/middleware/todo/threshold", "unknown_field"),
            ],
        ),
        (
            json!({"repeat_call": {"threshold": 1001}, "todo": "off"}),
            vec![
                ("/middleware/repeat_call/threshold", "out_of_range"),
                ("/middleware/todo", "invalid_type"),
            ],
        ),
        (
            json!({"repeat_call": {"threshold": 2.5, "enabled": 1}}),
            vec![
                ("/middleware/repeat_call/enabled", "invalid_type"),
                ("/middleware/repeat_call/threshold", "invalid_type"),
            ],
        ),
        (
            json!({"repair_tool_calls": {"enabled": false}, "a/b~": {}}),
            vec![
                ("/middleware/a~1b~0", "unknown_field"),
                ("/middleware/repair_tool_calls", "unknown_field"),
            ],
        ),
        (json!([]), vec![("/middleware", "invalid_type")]),
    ] {
        let change = json!({ "middleware": middleware });
        let refused = server
            .patch(&server.owner, "/v1/agents/helper", change)
            .await;
        refused.is_invalid(&expected);
    }
    let found = server.get(&server.owner, "/v1/agents/helper").await;
    assert_eq!(found.body["version"], 1);
}

#[tokio::test]
async fn a_change_is_made_only_from_the_version_that_if_match_names() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let change = async |version: &str, name: &str| {
        let call = server
            .call(Method::PATCH, "/v1/agents/helper")
            .key(&server.owner);
        call.header("if-match", version)
            .json(&json!({"name": name}))
            .send()
            .await
    };

    assert_eq!(change("\"1\"", "n").await.body["version"], 2);
    for stale in ["\"1\"", "2", "W/\"2\"", "\"\"", "\"2\", \"3\""] {
        change(stale, "n").await.is_problem(412, "version_mismatch");
    }
    assert_eq!(change("*", "m").await.body["version"], 3);
}

#[tokio::test]
async fn a_change_that_changes_nothing_is_answered_with_the_agent_as_it_is() {
    let server = Server::start().await;
    let made = server.agent(&server.owner, "helper").await;
    let same = json!({
        "name": made["name"], "model": made["model"], "provider": made["provider"],
        "tools": made["tools"], "temperature": made["temperature"], "metadata": made["metadata"],
    });

    for nothing in [json!({}), same] {
        let answer = server
            .patch(&server.owner, "/v1/agents/helper", nothing)
            .await;
        assert_eq!((answer.status.as_u16(), &answer.body), (200, &made));
    }

    let rows = server.get(&server.owner, "/v1/audit-events?action=agent.update");
    assert_eq!(rows.await.body["data"], json!([]));
}

#[tokio::test]
async fn a_name_or_model_that_cannot_be_shown_is_refused_when_it_is_made_and_when_it_is_changed() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let long = "m".repeat(201);
    for (name, model, codes) in [
        (" ", "", ["empty", "empty"]),
        (&*long, &*long, ["out_of_range", "out_of_range"]),
        ("a\nb", "exe.\u{202e}fdp", ["invalid_text", "invalid_text"]),
    ] {
        let mut body = json!({"name": name, "model": model});
        let expected = [("/model", codes[1]), ("/name", codes[0])];
        let changed = server
            .patch(&server.owner, "/v1/agents/helper", body.clone())
            .await;
        changed.is_invalid(&expected);
        body["slug"] = json!("other");
        body["provider"] = json!("demo");
        let made = server.post(&server.owner, "/v1/agents", body).await;
        made.is_invalid(&expected);
    }
}

#[tokio::test]
async fn archiving_again_changes_nothing_and_the_list_leaves_archived_agents_out() {
    let server = Server::start().await;
    server.agent(&server.owner, "old").await;
    server.agent(&server.owner, "new").await;
    for _ in 0..2 {
        let answer = server.delete(&server.owner, "/v1/agents/old").await;
        assert_eq!(answer.status, 204);
    }

    let slugs = async |path: &str| {
        let list = server.get(&server.owner, path).await;
        let data = list.body["data"].as_array().unwrap().clone();
        data.iter()
            .map(|agent| agent["slug"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(slugs("/v1/agents").await, ["new"]);
    assert_eq!(slugs("/v1/agents?include_archived=false").await, ["new"]);
    assert_eq!(
        slugs("/v1/agents?include_archived=true").await,
        ["new", "old"]
    );
    let wrong = server
        .get(&server.owner, "/v1/agents?include_archived=1")
        .await;
    wrong.is_invalid(&[("/include_archived", "invalid_format")]);
}

#[tokio::test]
async fn changes_leave_an_audit_row_and_so_do_refusals() {
    let server = Server::start().await;
    let agent = server.agent(&server.owner, "helper").await;
    server
        .patch(&server.member, "/v1/agents/helper", json!({}))
        .await;
    server.delete(&server.owner, "/v1/agents/nobody").await;

    let page = PageRequest {
        limit: 10,
        after: None,
    };
    let audit = &server.stores.audit;
    let rows = audit
        .list(server.tenant, AuditFilter::default(), page)
        .await
        .unwrap()
        .items;

    let mut told: Vec<_> = rows.iter().map(|row| (&*row.action, row.status)).collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            ("agent.archive", 404),
            ("agent.create", 201),
            ("agent.update", 403),
            ("key.create", 201),
            ("tenant.create", 201),
            ("user.create", 201),
        ]
    );
    let created = rows
        .iter()
        .find(|row| row.action == "agent.create")
        .unwrap();
    assert_eq!(json!(created.target_id), agent["id"]);
    assert!(created.request_id.is_some() && created.api_key_id.is_some());
}

#[tokio::test]
async fn tools_and_providers_are_listed_for_everyone() {
    let server = Server::start().await;

    let tools = server.get(&server.member, "/v1/tools").await;
    let providers = server.get(&server.member, "/v1/providers").await;

    let tool = |name: &str| {
        json!({"name": name, "description": "a tool", "parameters": {"type": "object"},
               "idempotency": "safe"})
    };
    let expected = json!({"data": [tool("get_time"), tool("write_todos")], "next_cursor": null});
    assert_eq!(tools.body, expected);
    let demo = json!({"name": "demo", "kind": "scripted"});
    assert_eq!(providers.body, json!({"data": [demo], "next_cursor": null}));
}

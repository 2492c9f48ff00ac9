//! The audit trail: every change and every refusal has its row, and who may read it does.

use hango_domain::access::Role;
use http::Method;
use serde_json::{Value, json};

use crate::support::Server;

const LIST: &str = "/v1/audit-events";
const NEVER_ISSUED: &str = "0199a000-0000-7000-8000-00000000ffff";

/// The rows of a list, newest first.
async fn rows(server: &Server, key: &str, query: &str) -> Vec<Value> {
    let list = server.get(key, &format!("{LIST}{query}")).await;
    assert_eq!(list.status, 200, "{list:?}");
    list.body["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_row_tells_who_did_what_to_what_and_in_which_request() {
    let server = Server::start().await;
    let me = server.get(&server.owner, "/v1/me").await.body;
    let call = server.call(Method::POST, "/v1/users").key(&server.owner);
    let call = call.header("x-request-id", "look-here").header(
        "traceparent",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    );
    let body = json!({"email": "a@b", "name": "Secret Name", "role": "admin"});
    let made = call.json(&body).send().await;

    let found = rows(&server, &server.owner, "?limit=1").await;

    let row = &found[0];
    assert!(row["id"].is_string());
    let at = row["at"].as_str().unwrap();
    assert_eq!((at.len(), &at[26..]), (27, "Z"));
    let mut rest = row.clone();
    for taken in ["id", "at"] {
        rest.as_object_mut().unwrap().remove(taken);
    }
    let expected = json!({
        "tenant_id": server.tenant,
        "actor_id": me["user"]["id"],
        "api_key_id": me["api_key"]["id"],
        "action": "user.create",
        "target_kind": "user",
        "target_id": made.body["id"],
        "detail": {"role": "admin"},
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "request_id": "look-here",
        "status": 201,
    });
    assert_eq!(rest, expected);
}

#[tokio::test]
async fn every_refused_call_on_people_and_keys_leaves_a_row() {
    let server = Server::start().await;
    let admin = server.another("admin@example.org", Role::Admin).await;
    let admin_id = server.user_of(&admin).await["id"].clone();
    let owner = server.user_of(&server.owner).await["id"].clone();
    let owner = owner.as_str().unwrap();
    let path = format!("/v1/users/{owner}");
    let post = async |path: &str, body: Value| server.post(&admin, path, body).await;

    let user = json!({"email": "member@example.org", "name": "x", "role": "member"});
    post("/v1/users", user).await.is_problem(409, "email_taken");
    let user = json!({"email": "o@b", "name": "x", "role": "owner"});
    post("/v1/users", user).await.is_problem(403, "forbidden");
    let body = json!({"name": "x"});
    let refused = server.patch(&admin, &path, body.clone()).await;
    refused.is_problem(403, "forbidden");
    let nowhere = format!("/v1/users/{NEVER_ISSUED}");
    let refused = server.patch(&admin, &nowhere, body).await;
    refused.is_problem(404, "not_found");
    post("/v1/api-keys", json!({})).await.entries();
    let refused = server
        .delete(&admin, &format!("/v1/api-keys/{NEVER_ISSUED}"))
        .await;
    refused.is_problem(404, "not_found");
    let query = format!("?actor_id={}", admin_id.as_str().unwrap());

    let found = rows(&server, &server.owner, &query).await;

    let told: Vec<_> = found
        .iter()
        .map(|row| json!([row["action"], row["status"], row["target_id"]]))
        .collect();
    let expected = [
        json!(["key.revoke", 404, NEVER_ISSUED]),
        json!(["key.create", 422, null]),
        json!(["user.update", 404, NEVER_ISSUED]),
        json!(["user.update", 403, owner]),
        json!(["user.create", 403, null]),
        json!(["user.create", 409, null]),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn rows_are_found_by_action_target_and_actor() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let session = session.rsplit('/').next().unwrap();
    let owner = server.user_of(&server.owner).await["id"].clone();
    let owner = owner.as_str().unwrap();
    let count = async |query: &str| rows(&server, &server.owner, query).await.len();

    assert_eq!(count("?action=session.create").await, 1);
    assert_eq!(count(&format!("?target_id={session}")).await, 1);
    assert_eq!(count(&format!("?actor_id={owner}")).await, 2);
    let all = format!("?actor_id={owner}&action=agent.create&target_id={session}");
    assert_eq!(count(&all).await, 0);
    assert_eq!(count(&format!("?target_id={NEVER_ISSUED}")).await, 0);
    assert_eq!(count("?action=run.cancel").await, 0);
    for (query, entry) in [
        ("?action=run.walk", ("/action", "invalid_format")),
        ("?action=%00", ("/action", "invalid_format")),
        (
            "?action=run.create&action=run.cancel",
            ("/action", "invalid_format"),
        ),
        ("?target_id=x", ("/target_id", "invalid_format")),
        ("?actor_id=", ("/actor_id", "invalid_format")),
        ("?actor=x", ("/actor", "unknown_field")),
        ("?limit=0", ("/limit", "out_of_range")),
    ] {
        let refused = server.get(&server.owner, &format!("{LIST}{query}")).await;
        refused.is_invalid(&[entry]);
    }
}

#[tokio::test]
async fn d10_a_trail_is_for_those_who_administer_its_tenant() {
    let server = Server::start().await;
    server.owners_session().await;
    let admin = server.another("admin@example.org", Role::Admin).await;

    for query in ["", "?action=run.walk", "?zzz=1"] {
        let refused = server.get(&server.member, &format!("{LIST}{query}")).await;
        refused.is_problem(403, "forbidden");
    }
    assert!(!rows(&server, &admin, "").await.is_empty());
    let others = rows(&server, &server.stranger, "").await;
    assert!(
        others
            .iter()
            .all(|row| row["tenant_id"] != json!(server.tenant))
    );
    let owner = server.user_of(&server.owner).await["id"].clone();
    let query = format!("?actor_id={}", owner.as_str().unwrap());
    assert_eq!(
        rows(&server, &server.stranger, &query).await,
        [] as [Value; 0]
    );
}

#[tokio::test]
async fn a_trail_is_walked_by_cursors_that_are_bound_to_its_filters() {
    let server = Server::start().await;
    server.owners_session().await;
    let whole = rows(&server, &server.owner, "").await;
    let (mut walked, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = server.get(&server.owner, &format!("{LIST}{query}")).await;
        walked.extend(page.body["data"].as_array().unwrap().clone());
        match page.body["next_cursor"].as_str() {
            Some(next) => query = format!("?limit=2&cursor={next}"),
            None => break,
        }
    }

    assert!(whole.len() > 3, "{whole:?}");
    assert_eq!(walked, whole);
    for path in [
        format!("{LIST}{query}&action=run.create"),
        format!("/v1/users{query}"),
    ] {
        let refused = server.get(&server.owner, &path).await;
        refused.is_problem(400, "invalid_cursor");
    }
    let refused = server
        .get(&server.member, &format!("{LIST}?cursor=x"))
        .await;
    refused.is_problem(400, "invalid_cursor");
}

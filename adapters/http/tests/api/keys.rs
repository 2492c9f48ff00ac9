//! Keys: made once, seen without their secret, and refused when they end.

use std::time::Duration;

use hango_domain::access::Role;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Server};

const NEVER_ISSUED: &str = "/v1/api-keys/0199a000-0000-7000-8000-00000000ffff";

/// Makes a key; its answer.
async fn make(server: &Server, by: &str, body: Value) -> Answer {
    server.post(by, "/v1/api-keys", body).await
}

/// Makes a key of who calls; its text and its path.
async fn made(server: &Server, by: &str) -> (String, String) {
    let made = make(server, by, json!({"name": "ci"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let text = made.body["key"].as_str().unwrap().to_owned();
    (text, format!("/v1/api-keys/{}", made.id()))
}

async fn opens(server: &Server, key: &str) -> bool {
    server.get(key, "/v1/me").await.status == 200
}

#[tokio::test]
async fn d01_a_key_is_shown_once() {
    let server = Server::start().await;

    let made = make(&server, &server.member, json!({"name": "ci"})).await;

    assert_eq!(made.status, 201, "{made:?}");
    let text = made.body["key"].as_str().unwrap();
    let (prefix, secret) = text[3..].split_once('_').unwrap();
    assert_eq!((prefix.len(), secret.len()), (12, 43));
    assert_eq!(made.body["prefix"], prefix);
    assert_eq!(
        made.body["user_id"],
        server.user_of(&server.member).await["id"]
    );
    assert!(opens(&server, text).await);
    let mut kept = made.body.clone();
    kept.as_object_mut().unwrap().remove("key");
    let list = server.get(&server.member, "/v1/api-keys").await;
    // Its use was noted meanwhile, or not.
    let mut listed = list.body["data"][0].clone();
    listed["last_used_at"] = Value::Null;
    assert_eq!(listed, kept);
    for path in ["/v1/api-keys", "/v1/me", "/v1/audit-events"] {
        let answer = server.get(&server.owner, path).await;
        assert!(!answer.text.contains(secret), "{answer:?}");
    }
}

#[tokio::test]
async fn d02_of_a_secret_only_its_hash_reaches_the_store() {
    let server = Server::start().await;
    let (text, _) = made(&server, &server.owner).await;
    let (prefix, secret) = text[3..].split_once('_').unwrap();

    let stored = server.stores.identities.credential(prefix).await;

    let stored = stored.unwrap().unwrap();
    let shown = format!("{stored:?}");
    assert!(!shown.contains(secret), "{shown}");
    assert!(!shown.contains(&format!("{:?}", secret.as_bytes())));
    assert_ne!(stored.key.secret_hash[..], secret.as_bytes()[..32]);
    let (other, _) = made(&server, &server.owner).await;
    let other = server.stores.identities.credential(&other[3..15]).await;
    assert_ne!(
        other.unwrap().unwrap().key.secret_hash,
        stored.key.secret_hash
    );
}

#[tokio::test]
async fn d04_what_ends_a_key_ends_it_at_the_next_request() {
    let server = Server::start().await;
    let (text, path) = made(&server, &server.member).await;
    let end = "1970-01-01T00:00:00Z";
    assert!(opens(&server, &text).await);

    let revoked = server.delete(&server.member, &path).await;

    assert_eq!((revoked.status.as_u16(), &*revoked.text), (204, ""));
    server
        .get(&text, "/v1/me")
        .await
        .is_problem(401, "unauthenticated");
    assert_eq!(server.delete(&server.member, &path).await.status, 204);
    let list = server.get(&server.member, "/v1/api-keys").await;
    assert!(list.body["data"][0]["revoked_at"].is_string());
    let past = make(
        &server,
        &server.owner,
        json!({"name": "k", "expires_at": end}),
    )
    .await;
    past.is_invalid(&[("/expires_at", "out_of_range")]);
}

#[tokio::test]
async fn d04_a_key_that_expires_is_refused_from_that_moment_on() {
    let server = Server::start().await;
    let me = server.get(&server.owner, "/v1/me").await;
    let now = me.body["user"]["created_at"].as_str().unwrap().to_owned();
    let now = chrono::DateTime::parse_from_rfc3339(&now).unwrap();
    let end = now + chrono::TimeDelta::minutes(1);
    let elsewhere = chrono::FixedOffset::east_opt(7_200).unwrap();
    let said = end.with_timezone(&elsewhere).to_rfc3339();
    assert!(said.ends_with("+02:00"));
    let body = json!({"name": "short", "expires_at": said});
    let made = make(&server, &server.owner, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let told = made.body["expires_at"].as_str().unwrap();
    assert_eq!(chrono::DateTime::parse_from_rfc3339(told).unwrap(), end);
    let text = made.body["key"].as_str().unwrap();

    assert!(opens(&server, text).await);
    server.clock.advance(Duration::from_mins(1));
    assert!(!opens(&server, text).await);
}

#[tokio::test]
async fn d05_two_keys_overlap_and_both_their_lives_are_in_the_trail() {
    let server = Server::start().await;
    let (old, old_path) = made(&server, &server.member).await;
    let (new, _) = made(&server, &old).await;

    assert!(opens(&server, &old).await && opens(&server, &new).await);
    assert_eq!(server.delete(&new, &old_path).await.status, 204);
    assert!(!opens(&server, &old).await && opens(&server, &new).await);

    let user = server.user_of(&server.member).await;
    let id = old_path.rsplit('/').next().unwrap();
    let rows = server
        .get(&server.owner, &format!("/v1/audit-events?target_id={id}"))
        .await;
    let rows = rows.body["data"].as_array().unwrap().clone();
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row["action"].as_str().unwrap(), &row["status"]))
        .collect();
    let expected = [("key.revoke", &json!(204)), ("key.create", &json!(201))];
    assert_eq!(told, expected);
    for row in &rows {
        assert_eq!(
            (&row["actor_id"], &row["target_kind"]),
            (&user["id"], &json!("api_key"))
        );
        assert!(row["request_id"].is_string());
    }
    assert_ne!(rows[0]["api_key_id"], rows[1]["api_key_id"]);
    assert_eq!(rows[1]["detail"], json!({"user_id": user["id"]}));
}

#[tokio::test]
async fn d06_a_keys_use_is_written_once_a_minute_beside_the_requests() {
    let server = Server::start().await;
    let used = async || {
        let me = server.get(&server.owner, "/v1/me").await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        me.body["api_key"]["last_used_at"].clone()
    };
    assert_eq!(used().await, Value::Null, "noted after the answer");
    let first = used().await;
    assert!(first.is_string());

    for _ in 0..59 {
        server.clock.advance(Duration::from_secs(1));
        assert_eq!(used().await, first);
    }
    server.clock.advance(Duration::from_secs(1));
    used().await;
    let second = used().await;
    assert_ne!(second, first);
}

#[tokio::test]
async fn d07_a_key_is_taken_from_its_header_and_from_nowhere_else() {
    let server = Server::start().await;
    let key = server.owner.clone();
    for query in ["api_key", "access_token", "authorization", "key"] {
        let path = format!("/v1/me?{query}={key}");
        let answer = server.call(Method::GET, &path).send().await;
        answer.is_problem(401, "unauthenticated");
        assert!(!answer.text.contains(&key[16..]), "{answer:?}");
        let doubled = server.get(&key, &path).await;
        doubled.is_invalid(&[(&format!("/{query}"), "unknown_field")]);
        assert!(!doubled.text.contains(&key[16..]), "{doubled:?}");
    }
    for (name, value) in [
        ("x-api-key", key.clone()),
        ("cookie", format!("authorization=Bearer {key}")),
        ("proxy-authorization", format!("Bearer {key}")),
    ] {
        let call = server.call(Method::GET, "/v1/me").header(name, &value);
        call.send().await.is_problem(401, "unauthenticated");
    }
    let twice = server.call(Method::GET, "/v1/me").key(&key).key(&key);
    twice.send().await.is_problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_member_has_his_own_keys_and_those_who_administer_all() {
    let server = Server::start().await;
    let admin = server.another("admin@example.org", Role::Admin).await;
    let (_, owners) = made(&server, &server.owner).await;
    let (_, members) = made(&server, &server.member).await;
    let count = async |key: &str| {
        let list = server.get(key, "/v1/api-keys").await;
        list.body["data"].as_array().unwrap().len()
    };

    assert_eq!(count(&server.member).await, 2);
    assert_eq!(count(&admin).await, 5);
    assert_eq!(count(&server.owner).await, 5);
    assert_eq!(count(&server.stranger).await, 1);
    server
        .delete(&server.member, &owners)
        .await
        .is_problem(404, "not_found");
    assert_eq!(server.delete(&admin, &members).await.status, 204);
    assert_eq!(server.delete(&admin, &owners).await.status, 204);
    // A key may revoke itself.
    let (text, own) = made(&server, &server.member).await;
    assert_eq!(server.delete(&text, &own).await.status, 204);
    assert!(!opens(&server, &text).await);
}

#[tokio::test]
async fn nobody_makes_a_key_of_a_user_whom_he_could_not_change() {
    let server = Server::start().await;
    let admin = server.another("admin@example.org", Role::Admin).await;
    let id = async |key: &str| server.user_of(key).await["id"].clone();
    let (owner, member) = (id(&server.owner).await, id(&server.member).await);
    let foreign = id(&server.stranger).await;
    let own = id(&admin).await;
    let ask = async |by: &str, user: &Value| {
        make(&server, by, json!({"name": "k", "user_id": user})).await
    };

    for user in [
        &owner,
        &own,
        &foreign,
        &json!("0199a000-0000-7000-8000-00000000ffff"),
    ] {
        ask(&server.member, user).await.is_problem(404, "not_found");
    }
    ask(&admin, &owner).await.is_problem(403, "forbidden");
    ask(&admin, &foreign).await.is_problem(404, "not_found");
    for (by, user) in [
        (&server.member, &member),
        (&admin, &member),
        (&admin, &own),
        (&server.owner, &own),
        (&server.owner, &owner),
    ] {
        let made = ask(by, user).await;
        assert_eq!(
            (made.status.as_u16(), &made.body["user_id"]),
            (201, user),
            "{made:?}"
        );
        let text = made.body["key"].as_str().unwrap();
        assert_eq!(id(text).await, *user);
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_key_is_listed_at_once() {
    let server = Server::start().await;
    let wrong = async |body: Value| make(&server, &server.member, body).await;

    wrong(json!({})).await.is_invalid(&[("/name", "required")]);
    let body = json!({"name": "", "user_id": "me", "expires_at": "tomorrow", "key": "mine"});
    wrong(body).await.is_invalid(&[
        ("/expires_at", "invalid_format"),
        ("/key", "unknown_field"),
        ("/name", "empty"),
        ("/user_id", "invalid_format"),
    ]);
    for (end, code) in [
        (json!("2030-01-31"), "invalid_format"),
        (json!("2030-01-31T12:00:00"), "invalid_format"),
        (json!("2030-02-31T12:00:00Z"), "invalid_format"),
        (json!(1_900_000_000), "invalid_type"),
        (json!("1969-12-31T23:59:59Z"), "out_of_range"),
    ] {
        let body = json!({"name": "k", "expires_at": end});
        wrong(body).await.is_invalid(&[("/expires_at", code)]);
    }
    let never = wrong(json!({"name": "k", "expires_at": null})).await;
    assert_eq!(
        (never.status.as_u16(), &never.body["expires_at"]),
        (201, &Value::Null)
    );
}

#[tokio::test]
async fn d16_d17_a_foreign_key_is_answered_like_one_that_there_never_was() {
    let server = Server::start().await;
    let (_, owners) = made(&server, &server.owner).await;
    let id = owners.rsplit('/').next().unwrap();
    let answer = async |by: &str, path: &str| {
        let call = server.call(Method::DELETE, path).key(by);
        let answer = call.header("x-request-id", "same").send().await;
        answer.is_problem(404, "not_found");
        answer.text
    };
    let expected = answer(&server.owner, NEVER_ISSUED).await;

    assert_eq!(answer(&server.stranger, &owners).await, expected);
    assert_eq!(answer(&server.member, &owners).await, expected);
    for malformed in ["x", "%00", "%ff", &id.to_uppercase(), &"a".repeat(10_000)] {
        let path = format!("/v1/api-keys/{malformed}?zzz=1");
        assert_eq!(answer(&server.owner, &path).await, expected);
    }
    let unknown = server
        .delete(&server.owner, &format!("{owners}?zzz=1"))
        .await;
    unknown.is_invalid(&[("/zzz", "unknown_field")]);
}

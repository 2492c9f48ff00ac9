//! People and keys over the real binary: what is done in one process holds in every other at once, and
//! nothing that opens anything is written down.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::api::{Api, list, text};
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::world::{Plan, World};

const ADMIN: (&str, &str) = ("HANGO_ADMIN_TOKEN", "open sesame, said the one operator");

/// How soon what is taken away is gone everywhere.
const SOON: Duration = Duration::from_secs(1);

fn idle(_: &Ask) -> Reply {
    Reply::text("all done")
}

/// A new user of that role; his id.
async fn user(by: &Api, email: &str, role: &str) -> String {
    let body = json!({"email": email, "name": email, "role": role});
    let made = by.post("/v1/users", &body).await.expect(201);
    text(&made["id"])
}

/// A new key of that user.
async fn key_of(by: &Api, user: &str) -> Value {
    let body = json!({"name": "test", "user_id": user});
    by.post("/v1/api-keys", &body).await.expect(201)
}

/// The caller's own id.
async fn own_id(api: &Api) -> String {
    text(&api.get("/v1/me").await.expect(200)["user"]["id"])
}

#[tokio::test(flavor = "multi_thread")]
async fn d04_what_one_replica_takes_away_every_other_refuses_at_once() {
    let plan = Plan::on(Kind::Postgres, &[ADMIN]).await;
    let world = plan.start(idle).await;
    let others = [world.join(&[], &[]).await, world.join(&[], &[]).await];
    let api = &world.api;
    let refused_by_all = async |key: &Value, begun: Instant| {
        for replica in [api, &others[0].api, &others[1].api] {
            let refused = replica.with_key(key["key"].as_str()).get("/v1/me").await;
            assert_eq!(refused.expect(401)["code"], "unauthenticated");
        }
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    };
    let accepted_by_all = async |key: &Value| {
        for replica in [api, &others[0].api, &others[1].api] {
            let key = key["key"].as_str();
            replica.with_key(key).get("/v1/me").await.expect(200);
        }
    };

    let id = user(api, "ada@example.org", "admin").await;
    for _ in 0..10 {
        let key = key_of(api, &id).await;
        accepted_by_all(&key).await;
        let begun = Instant::now();
        let path = format!("/v1/api-keys/{}", text(&key["id"]));
        let revoked = others[0].api.delete(&path).await;
        assert_eq!(revoked.status, 204);
        refused_by_all(&key, begun).await;
    }

    let key = key_of(api, &id).await;
    accepted_by_all(&key).await;
    let begun = Instant::now();
    let path = format!("/v1/users/{id}");
    let disabled = others[1]
        .api
        .patch(&path, &json!({"status": "disabled"}))
        .await;
    disabled.expect(200);
    refused_by_all(&key, begun).await;
    api.patch(&path, &json!({"status": "active"}))
        .await
        .expect(200);
    accepted_by_all(&key).await;

    let operator = others[0].api.with_key(Some(ADMIN.1));
    let tenant = text(&api.get("/v1/me").await.expect(200)["tenant"]["id"]);
    let begun = Instant::now();
    let path = format!("/v1/admin/tenants/{tenant}");
    let suspended = operator.patch(&path, &json!({"status": "suspended"})).await;
    suspended.expect(200);
    refused_by_all(&key, begun).await;
    let active = operator.patch(&path, &json!({"status": "active"})).await;
    active.expect(200);
    accepted_by_all(&key).await;
}

async fn d14_two_owners_who_demote_each_other_leave_one(kind: Kind) {
    let world = Plan::on(kind, &[]).await.start(idle).await;
    let other = match kind {
        Kind::Sqlite => None,
        Kind::Postgres => Some(world.join(&[], &[]).await),
    };
    let here = &world.api;
    let there = other.as_ref().map_or(here, |other| &other.api);
    let first = own_id(here).await;
    let role = async |by: &Api, id: &str, role: &str| {
        let path = format!("/v1/users/{id}");
        by.patch(&path, &json!({"role": role})).await
    };
    for round in 0..10 {
        let second = user(here, &format!("owner{round}@example.org"), "owner").await;
        let key = key_of(here, &second).await;
        let second_api = there.with_key(key["key"].as_str());

        let both = tokio::join!(
            role(here, &second, "admin"),
            role(&second_api, &first, "admin")
        );

        let mut statuses = [both.0.status, both.1.status];
        statuses.sort_unstable();
        assert_eq!(statuses[0], 200, "{both:?}");
        // He was an owner when he was let in, and is none when he would change something.
        assert!([401, 403, 409].contains(&statuses[1]), "{both:?}");
        let users = list(&here.get("/v1/users?limit=200").await.expect(200));
        let owners = users.iter().filter(|user| user["role"] == "owner");
        assert_eq!(owners.count(), 1, "{users:#?}");
        // The next round begins with the first one alone.
        if both.1.status == 200 {
            role(&second_api, &first, "owner").await.expect(200);
            role(here, &second, "admin").await.expect(200);
        }
    }
}

on_both_stores! {
    d14_two_owners_who_demote_each_other_leave_one
}

#[tokio::test(flavor = "multi_thread")]
async fn d02_d07_no_secret_is_in_the_store_or_in_the_log() {
    let mut world = World::start(&[ADMIN, ("HANGO_LOG", "trace")], idle).await;
    let api = world.api.clone();
    let key = key_of(&api, &own_id(&api).await).await;
    let whole = text(&key["key"]);
    let (_, secret) = whole[3..].split_once('_').expect("a key has parts");
    api.with_key(Some(&whole)).get("/v1/me").await.expect(200);
    for query in ["api_key", "access_token"] {
        let path = format!("/v1/me?{query}={whole}");
        api.with_key(None).get(&path).await.expect(401);
        api.get(&path).await.expect(422);
    }
    let operator = api.with_key(Some(ADMIN.1));
    operator.get("/v1/admin/tenants").await.expect(200);
    let refused = operator.post("/v1/admin/tenants", &json!({})).await;
    refused.expect(422);

    let mut store = Vec::new();
    for file in ["hango.db", "hango.db-wal"] {
        store.extend(std::fs::read(world.home.path().join(file)).unwrap_or_default());
    }
    let holds = |text: &str| {
        let mut parts = store.windows(text.len());
        parts.any(|part| part == text.as_bytes())
    };
    let log = world.hango().logged();
    assert!(holds(&text(&key["prefix"])), "the key itself is there");
    assert!(log.contains("an operator was refused"), "{log}");
    for canary in [secret, ADMIN.1] {
        assert!(!holds(canary), "{canary} is in the store");
        assert!(!log.contains(canary), "{canary} is in the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_administrator_does_on_the_store_is_in_the_trail() {
    let world = World::start(&[], idle).await;
    let run = |arguments: &[&str]| {
        let ended = world.home.run(&[&["admin", "--json"], arguments].concat());
        assert_eq!(ended.status, Some(0), "{}", ended.err);
        serde_json::from_str::<Value>(&ended.out).expect("it is JSON")
    };
    let who = ["--tenant", "default", "--email", "ada@example.org"];

    let user = run(&[&["user", "create", "--role", "member"], &who[..]].concat());
    let key = run(&[&["key", "create", "--name", "ci"], &who[..]].concat());
    let ada = world.api.with_key(key["key"].as_str());
    let me = ada.get("/v1/me").await.expect(200);
    assert_eq!(me["user"], user);
    let revoked = run(&["key", "revoke", &text(&key["prefix"])]);
    assert_eq!(revoked["revoked"], true);
    ada.get("/v1/me").await.expect(401);
    let disabled = run(&[&["user", "disable"], &who[..]].concat());
    assert_eq!(disabled["status"], "disabled");
    let tenants = run(&["tenant", "list"]);
    assert_eq!(list(&tenants)[0]["slug"], "default");

    let rows = list(&world.api.get("/v1/audit-events").await.expect(200));
    let told: Vec<_> = rows[..4]
        .iter()
        .map(|row| (text(&row["action"]), row["target_id"].clone()))
        .collect();
    let expected = [
        ("user.update", &user["id"]),
        ("key.revoke", &key["id"]),
        ("key.create", &key["id"]),
        ("user.create", &user["id"]),
    ];
    let expected = expected.map(|(action, target)| (action.to_owned(), target.clone()));
    assert_eq!(told, expected);
    assert!(rows[..4].iter().all(|row| row["actor_id"].is_null()));
    for bad in [
        &["key", "create", "--name", " "][..],
        &["user", "create", "--role", "member"],
    ] {
        let refused = world.home.run(&[&["admin"], bad, &who[..]].concat());
        assert_eq!(refused.status, Some(1), "{}", refused.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_administrator_is_refused_on_the_store_is_in_the_trail_of_the_tenant_that_he_named()
{
    let world = World::start(&[], idle).await;
    let owner = own_id(&world.api).await;
    let refused = |arguments: &[&str]| {
        let ended = world.home.run(&[&["admin"], arguments].concat());
        assert_eq!(ended.status, Some(1), "{}", ended.err);
    };
    let of = |email: &'static str| ["--tenant", "default", "--email", email];

    let known = of("owner@localhost");
    refused(&[&["user", "create", "--role", "member"], &known[..]].concat());
    refused(&[&["user", "create", "--role", "member"], &of("nowhere")[..]].concat());
    refused(&[&["key", "create", "--name", " "], &known[..]].concat());
    refused(&[&["user", "disable"], &known[..]].concat());
    refused(&[&["user", "disable"], &of("a@b")[..]].concat());
    // Here is no trail.
    refused(&["user", "disable", "--tenant", "none", "--email", "a@b"]);

    let rows = list(&world.api.get("/v1/audit-events").await.expect(200));
    let told: Vec<_> = rows
        .iter()
        .filter(|row| row["status"].as_u64() >= Some(400))
        .map(|row| {
            let by_nobody = row["actor_id"].is_null() && row["request_id"].is_null();
            assert!(by_nobody, "{row}");
            let action = text(&row["action"]);
            (action, row["status"].clone(), row["target_id"].clone())
        })
        .collect();
    let expected = [
        ("user.update", 404, json!(null)),
        ("user.update", 409, json!(owner)),
        ("key.create", 422, json!(null)),
        ("user.create", 422, json!(null)),
        ("user.create", 409, json!(null)),
    ];
    let expected =
        expected.map(|(action, status, target)| (action.to_owned(), json!(status), target));
    assert_eq!(told, expected);
}

//! What holds for every call: keys, ids of requests, unknown paths and methods, health.

use std::sync::Arc;
use std::time::Duration;

use hango_application::use_cases::{Input, RequestContext};
use hango_domain::access::Role;
use hango_domain::people::TenantStatus;
use hango_ports::session_store::MockSessionStore;
use hango_ports::store::MockStoreHealth;
use hango_ports::{StoreFailure, Stores};
use http::Method;
use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn whatever_is_wrong_with_a_key_the_answer_is_the_same() {
    let server = Server::start().await;
    let good = server.owner.clone();
    let (prefix, _) = good.rsplit_once('_').unwrap();
    let wrong_secret = format!("Bearer {prefix}_{}", "x".repeat(43));
    let unknown = format!("Bearer hk_AAAAAAAAAAAA_{}", "x".repeat(43));
    let mut bodies = Vec::new();
    for authorization in [
        "",
        "Bearer",
        "Bearer ",
        "Basic b3duZXI6",
        good.as_str(),
        "Bearer hk_short",
        &wrong_secret,
        &unknown,
    ] {
        let call = server.call(Method::GET, "/v1/me");
        let call = call.header("x-request-id", "same");
        let answer = call.header("authorization", authorization).send().await;
        answer.is_problem(401, "unauthenticated");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        bodies.push(answer.text);
    }
    let call = server.call(Method::GET, "/v1/me");
    bodies.push(call.header("x-request-id", "same").send().await.text);

    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}

#[tokio::test]
async fn a_revoked_key_a_disabled_user_and_a_suspended_tenant_are_refused_alike() {
    let server = Server::start().await;
    let revoked = server.another("a@example.org", Role::Member).await;
    let prefix = &revoked[3..15];
    server
        .use_cases
        .revoke_key(&prefix.parse().unwrap())
        .await
        .unwrap();
    server
        .get(&revoked, "/v1/me")
        .await
        .is_problem(401, "unauthenticated");

    let user = server
        .use_cases
        .user_by_email(server.tenant, "member@example.org")
        .await
        .unwrap();
    server
        .use_cases
        .disable_user(server.tenant, user.id)
        .await
        .unwrap();
    server
        .get(&server.member, "/v1/me")
        .await
        .is_problem(401, "unauthenticated");

    assert_eq!(server.get(&server.owner, "/v1/me").await.status, 200);
    server
        .use_cases
        .set_tenant_status(
            &RequestContext::default(),
            server.tenant,
            Input::new(TenantStatus::Suspended),
        )
        .await
        .unwrap();
    server
        .get(&server.owner, "/v1/me")
        .await
        .is_problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_key_that_expired_is_refused() {
    let server = Server::start().await;
    let owner = server
        .use_cases
        .user_by_email(server.tenant, "owner@example.org")
        .await
        .unwrap();
    let end = server.worker.now().plus(Duration::from_mins(1));
    let made = server
        .use_cases
        .create_key(&owner, "short", Some(end))
        .await;
    let (_, key) = made.unwrap();

    assert_eq!(server.get(key.expose(), "/v1/me").await.status, 200);
    server.clock.advance(Duration::from_mins(1));
    server
        .get(key.expose(), "/v1/me")
        .await
        .is_problem(401, "unauthenticated");
}

#[tokio::test]
async fn the_caller_is_told_who_he_is_and_no_secret() {
    let server = Server::start().await;

    let me = server.get(&server.member, "/v1/me").await;

    assert_eq!(me.status, 200);
    assert_eq!(me.body["user"]["email"], "member@example.org");
    assert_eq!(me.body["user"]["role"], "member");
    assert_eq!(me.body["tenant"]["slug"], "acme");
    assert_eq!(me.body["api_key"]["prefix"], server.member[3..15]);
    assert!(!me.text.contains(&server.member[16..]));
    assert!(!me.text.contains("hash"));
    let at = me.body["user"]["created_at"].as_str().unwrap();
    assert_eq!((at.len(), &at[19..20], &at[26..]), (27, ".", "Z"), "{at}");
}

#[tokio::test]
async fn a_key_is_noted_to_be_in_use_beside_the_request() {
    let server = Server::start().await;
    server.get(&server.owner, "/v1/me").await;
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }

    let me = server.get(&server.owner, "/v1/me").await;

    assert!(me.body["api_key"]["last_used_at"].is_string(), "{me:?}");
}

#[tokio::test]
async fn a_requests_own_id_is_taken_over_if_it_can_be() {
    let server = Server::start().await;
    let id_of = async |id: &str| {
        let call = server.call(Method::GET, "/healthz");
        let answer = call.header("x-request-id", id).send().await;
        answer.header("x-request-id").to_owned()
    };

    assert_eq!(id_of("trace-me_1").await, "trace-me_1");
    assert_eq!(id_of(&"i".repeat(128)).await, "i".repeat(128));
    for bad in ["", "two words", &"i".repeat(129)] {
        let made = id_of(bad).await;
        assert_eq!(made.len(), 36, "{bad:?} became {made:?}");
    }
    let none = server.call(Method::GET, "/nowhere").send().await;
    assert_eq!(none.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn unknown_paths_are_404_and_methods_a_path_does_not_have_405() {
    let server = Server::start().await;
    for path in [
        "/nothing",
        "/v1",
        "/v1/nothing",
        "/v1/agents/",
        "/v1/users/",
        "/v1/api-keys/x/y",
    ] {
        server
            .get(&server.owner, path)
            .await
            .is_problem(404, "not_found");
    }

    let answer = server.delete(&server.owner, "/v1/agents").await;
    answer.is_problem(405, "method_not_allowed");
    let mut allowed: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
}

#[tokio::test]
async fn a_parameter_that_nobody_knows_is_refused_everywhere() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    for path in [
        "/v1/me",
        "/v1/users",
        &server.path_of(&server.owner).await,
        "/v1/api-keys",
        "/v1/audit-events",
        "/v1/agents",
        "/v1/agents/helper",
        "/v1/tools",
        "/v1/providers",
        "/v1/sessions",
        session.as_str(),
        &format!("{session}/messages"),
        &format!("{session}/runs"),
        "/v1/runs",
        &run,
        &format!("{run}/tool-calls"),
        &format!("{run}/explain"),
        "/v1/usage",
    ] {
        let answer = server.get(&server.owner, &format!("{path}?zz%2Fz=1")).await;
        answer.is_invalid(&[("/zz~1z", "unknown_field")]);
    }
    for path in ["/v1/agents/helper?zzz=1", &format!("{session}?zzz=1")] {
        let answer = server.delete(&server.owner, path).await;
        answer.is_invalid(&[("/zzz", "unknown_field")]);
    }
    let cancel = format!("{run}/cancel?zzz=1");
    let answer = server.post(&server.owner, &cancel, json!({"why": 1})).await;
    answer.is_invalid(&[("/why", "unknown_field"), ("/zzz", "unknown_field")]);
}

#[tokio::test]
async fn a_process_that_drains_lives_and_is_not_ready() {
    let server = Server::start().await;
    let health = async |path| server.call(Method::GET, path).send().await;
    assert_eq!(health("/healthz").await.status, 200);
    assert_eq!(health("/readyz").await.status, 200);

    server.readiness.drain();

    assert_eq!(health("/healthz").await.status, 200);
    let answer = health("/readyz").await;
    answer.is_problem(503, "unavailable");
    assert_eq!(answer.header("retry-after"), "1");
    assert!(answer.text.contains("draining"));
}

#[tokio::test]
async fn a_process_that_starts_lives_and_answers_no_call_yet() {
    let server = Server::start().await.starting(hango_http::router);
    let call = async |path| server.get(&server.owner, path).await;

    assert_eq!(call("/healthz").await.status, 200);
    for path in ["/readyz", "/v1/me", "/v1/agents"] {
        let answer = call(path).await;
        answer.is_problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), "1");
        assert!(answer.text.contains("not ready: starting"), "{answer:?}");
    }

    server.readiness.start();

    for path in ["/readyz", "/v1/me", "/v1/agents"] {
        assert_eq!(call(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_process_without_the_api_tells_how_it_is_and_nothing_else() {
    let server = Server::start().await.starting(hango_http::platform_router);
    server.readiness.start();
    let call = async |path| server.get(&server.owner, path).await;

    assert_eq!(call("/healthz").await.status, 200);
    assert_eq!(call("/readyz").await.status, 200);
    call("/v1/me").await.is_problem(404, "not_found");
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_503_and_its_reason_is_for_the_log() {
    let mut sessions = MockSessionStore::new();
    sessions
        .expect_find()
        .returning(|_, _| Err(StoreFailure::Unavailable("secret.internal".into()).into()));
    let mut health = MockStoreHealth::new();
    health
        .expect_check()
        .returning(|| Err(StoreFailure::Unavailable("secret.internal".into())));
    let server = Server::over(|stores| Stores {
        sessions: Arc::new(sessions),
        health: Arc::new(health),
        ..stores
    })
    .await;

    for path in [
        "/v1/sessions/0199a000-0000-7000-8000-00000000ffff",
        "/readyz",
    ] {
        let answer = server.get(&server.owner, path).await;
        answer.is_problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), "1");
        assert!(!answer.text.contains("secret"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_store_without_room_and_one_that_cannot_be_read_are_told_apart() {
    let mut sessions = MockSessionStore::new();
    sessions
        .expect_update()
        .returning(|_, _, _, _| Err(StoreFailure::OutOfSpace("secret.internal".into()).into()));
    sessions.expect_find().returning(|_, _| {
        let corrupt = StoreFailure::Corrupt {
            table: "secret_table",
            column: "title",
            row: "1".to_owned(),
            source: "secret".into(),
        };
        Err(corrupt.into())
    });
    let server = Server::over(|stores| Stores {
        sessions: Arc::new(sessions),
        ..stores
    })
    .await;
    let path = "/v1/sessions/0199a000-0000-7000-8000-00000000ffff";

    let full = server
        .patch(&server.owner, path, json!({"title": "x"}))
        .await;
    full.is_problem(503, "insufficient_storage");
    let corrupt = server.get(&server.owner, path).await;
    corrupt.is_problem(500, "internal");
    assert!(!format!("{full:?}{corrupt:?}").contains("secret"));
}

#[tokio::test]
async fn a_panic_is_answered_as_an_internal_error() {
    let mut sessions = MockSessionStore::new();
    sessions
        .expect_find()
        .returning(|_, _| panic!("secret.internal"));
    let server = Server::over(|stores| Stores {
        sessions: Arc::new(sessions),
        ..stores
    })
    .await;

    let path = "/v1/sessions/0199a000-0000-7000-8000-00000000ffff";
    let answer = server.get(&server.owner, path).await;

    answer.is_problem(500, "internal");
    assert!(!answer.text.contains("secret"), "{answer:?}");
}

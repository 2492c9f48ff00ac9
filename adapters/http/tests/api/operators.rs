//! The operator's calls: tenants are made, listed and suspended with a token that no tenant has.

use std::time::{Duration, Instant};

use hango_domain::TenantId;
use hango_http::{Api, Limits, router, serve};
use hango_ports::audit_store::{AuditFilter, AuditRow};
use hango_ports::page::PageRequest;
use http::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::rates::ask;
use crate::support::{ADMIN_TOKEN, Server};

const NEVER_ISSUED: &str = "/v1/admin/tenants/0199a000-0000-7000-8000-00000000ffff";

fn new(slug: &str) -> Value {
    let owner = json!({"email": "ada@example.org", "name": "Ada"});
    json!({"name": "A tenant", "slug": slug, "owner": owner})
}

/// The trail of a tenant, newest first.
async fn trail(server: &Server, tenant: &Value) -> Vec<AuditRow> {
    let tenant: TenantId = tenant.as_str().unwrap().parse().unwrap();
    let page = PageRequest {
        limit: 100,
        after: None,
    };
    let rows = server
        .stores
        .audit
        .list(tenant, AuditFilter::default(), page);
    rows.await.unwrap().items
}

#[tokio::test]
async fn a_tenant_is_made_with_its_owner_and_his_key() {
    let server = Server::start().await;
    let call = server
        .call(Method::POST, "/v1/admin/tenants")
        .key(ADMIN_TOKEN);
    let call = call.header("x-request-id", "made-here");
    let call = call.header(
        "traceparent",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    );

    let made = call.json(&new("initech")).send().await;

    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["tenant"]["slug"], "initech");
    assert_eq!(made.body["tenant"]["name"], "A tenant");
    assert_eq!(made.body["tenant"]["status"], "active");
    assert_eq!(made.body["owner"]["email"], "ada@example.org");
    assert_eq!(made.body["owner"]["role"], "owner");
    let key = made.body["api_key"]["key"].as_str().unwrap();
    let me = server.get(key, "/v1/me").await;
    assert_eq!(me.body["tenant"], made.body["tenant"]);
    assert_eq!(me.body["user"], made.body["owner"]);
    assert_eq!(me.body["api_key"]["id"], made.body["api_key"]["id"]);
    let rows = trail(&server, &made.body["tenant"]["id"]).await;
    let [row] = &*rows else { panic!("{rows:?}") };
    assert_eq!((&*row.action, row.status), ("tenant.create", 201));
    assert_eq!((row.actor_id, row.api_key_id), (None, None));
    assert_eq!(row.request_id.as_deref(), Some("made-here"));
    let trace = row.trace_id.map(|trace| trace.to_string());
    assert_eq!(trace.as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
    let again = server.post(ADMIN_TOKEN, "/v1/admin/tenants", new("initech"));
    again.await.is_problem(409, "slug_taken");
}

#[tokio::test]
async fn tenants_are_listed_newest_first_in_pieces() {
    let server = Server::start().await;
    let list = async |path: &str| {
        let list = server.get(ADMIN_TOKEN, path).await;
        assert_eq!(list.status, 200, "{list:?}");
        list.body
    };

    let first = list("/v1/admin/tenants?limit=1").await;
    let next = first["next_cursor"].as_str().unwrap();
    let second = list(&format!("/v1/admin/tenants?limit=1&cursor={next}")).await;

    assert_eq!(first["data"][0]["slug"], "umbrella");
    assert_eq!(second["data"][0]["slug"], "acme");
    assert_eq!(second["next_cursor"], Value::Null);
    let unknown = server.get(ADMIN_TOKEN, "/v1/admin/tenants?zzz=1").await;
    unknown.is_invalid(&[("/zzz", "unknown_field")]);
}

#[tokio::test]
async fn a_suspended_tenants_keys_open_nothing_until_it_is_active_again() {
    let server = Server::start().await;
    let tenant = server.user_of(&server.owner).await["tenant_id"].clone();
    let path = format!("/v1/admin/tenants/{}", tenant.as_str().unwrap());
    let set = async |status: &str| {
        let set = server
            .patch(ADMIN_TOKEN, &path, json!({"status": status}))
            .await;
        assert_eq!(
            (set.status.as_u16(), &set.body["status"]),
            (200, &json!(status))
        );
    };

    set("suspended").await;
    for key in [&server.owner, &server.member] {
        server
            .get(key, "/v1/me")
            .await
            .is_problem(401, "unauthenticated");
    }
    assert_eq!(server.get(&server.stranger, "/v1/me").await.status, 200);
    set("active").await;
    assert_eq!(server.get(&server.owner, "/v1/me").await.status, 200);

    let list = "/v1/audit-events?action=tenant.update";
    let rows = server.get(&server.owner, list).await;
    let rows = rows.body["data"].as_array().unwrap().iter();
    let told: Vec<_> = rows
        .map(|row| {
            (
                &row["detail"]["status"],
                &row["actor_id"],
                &row["target_id"],
            )
        })
        .collect();
    let expected = [
        (&json!("active"), &Value::Null, &tenant),
        (&json!("suspended"), &Value::Null, &tenant),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_is_wrong_with_a_tenant_is_listed_at_once() {
    let server = Server::start().await;
    let post = async |body: Value| server.post(ADMIN_TOKEN, "/v1/admin/tenants", body).await;

    post(json!({})).await.is_invalid(&[
        ("/name", "required"),
        ("/owner", "required"),
        ("/slug", "required"),
    ]);
    let owner = json!({"email": "nobody", "name": "\u{7}", "role": "owner"});
    let body = json!({"name": " ", "slug": "No Slug", "owner": owner, "status": "active"});
    post(body).await.is_invalid(&[
        ("/name", "empty"),
        ("/owner/email", "invalid_format"),
        ("/owner/name", "invalid_text"),
        ("/owner/role", "unknown_field"),
        ("/slug", "invalid_format"),
        ("/status", "unknown_field"),
    ]);
}

#[tokio::test]
async fn an_operators_refused_call_is_in_the_trail_of_the_tenant_that_it_names() {
    let server = Server::start().await;
    let tenant = server.user_of(&server.owner).await["tenant_id"].clone();
    let path = format!("/v1/admin/tenants/{}", tenant.as_str().unwrap());
    for (body, entry) in [
        (json!({}), ("/status", "required")),
        (json!({"status": "gone"}), ("/status", "invalid_format")),
        (json!({"status": null}), ("/status", "invalid_type")),
    ] {
        let refused = server.patch(ADMIN_TOKEN, &path, body).await;
        refused.is_invalid(&[entry]);
    }
    for body in [json!({"status": "active"}), json!({"zzz": 1})] {
        let unknown = server.patch(ADMIN_TOKEN, NEVER_ISSUED, body).await;
        unknown.is_problem(404, "not_found");
    }

    let rows = trail(&server, &tenant).await;
    let refused: Vec<_> = rows
        .iter()
        .filter(|row| row.action == "tenant.update")
        .map(|row| (row.status, row.actor_id, row.target_id.map(|id| json!(id))))
        .collect();
    let expected = vec![(422, None, Some(tenant)); 3];
    assert_eq!(refused, expected);
    let nowhere = json!("0199a000-0000-7000-8000-00000000ffff");
    assert_eq!(trail(&server, &nowhere).await, []);
}

#[tokio::test]
async fn no_key_opens_the_operators_calls_and_his_token_opens_no_others() {
    let server = Server::start().await;
    for key in [
        &server.owner,
        "",
        "open",
        &format!("{ADMIN_TOKEN}!"),
        &ADMIN_TOKEN.to_uppercase(),
    ] {
        for (method, path) in [
            (Method::GET, "/v1/admin/tenants"),
            (Method::POST, "/v1/admin/tenants"),
            (Method::PATCH, NEVER_ISSUED),
        ] {
            let answer = server.call(method, path).key(key).send().await;
            answer.is_problem(401, "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
    server
        .get(ADMIN_TOKEN, "/v1/users")
        .await
        .is_problem(401, "unauthenticated");
}

#[tokio::test]
async fn without_a_token_the_operators_calls_do_not_exist() {
    let without = |api: Api| {
        router(Api {
            admin_token: None,
            metrics: None,
            ..api
        })
    };
    let server = Server::start().await.starting(without);
    server.readiness.start();
    let mut bodies = Vec::new();
    for key in ["", ADMIN_TOKEN, &server.owner] {
        for (method, path) in [
            (Method::GET, "/v1/admin/tenants"),
            (Method::POST, "/v1/admin/tenants"),
            (Method::DELETE, "/v1/admin/tenants"),
            (Method::PATCH, NEVER_ISSUED),
            (Method::GET, "/v1/nothing"),
        ] {
            let call = server.call(method, path).key(key);
            let answer = call.header("x-request-id", "same").send().await;
            answer.is_problem(404, "not_found");
            bodies.push(answer.text);
        }
    }

    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}

#[tokio::test]
async fn d08_a_token_that_opens_nothing_is_refused_later_the_oftener_it_is_tried() {
    let server = Server::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let never = std::future::pending();
    tokio::spawn(serve(
        listener,
        server.router.clone(),
        never,
        Limits::default(),
    ));
    let begin = Instant::now();

    for n in 0..13 {
        let guess = format!("guess {n}");
        let answer = ask(address, "/v1/admin/tenants", &guess, "192.0.2.1").await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }

    let late = begin.elapsed();
    assert!(late > Duration::from_millis(200), "{late:?}");
    let good = ask(address, "/v1/admin/tenants", ADMIN_TOKEN, "192.0.2.1").await;
    assert!(good.starts_with("HTTP/1.1 200 "), "{good}");
}

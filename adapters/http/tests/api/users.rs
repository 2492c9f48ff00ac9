//! Users: who sees, makes and changes whom.

use hango_domain::access::Role;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Server};

const NEVER_ISSUED: &str = "/v1/users/0199a000-0000-7000-8000-00000000ffff";

fn new(email: &str, role: &str) -> Value {
    json!({"email": email, "name": "Somebody", "role": role})
}

async fn emails(server: &Server, key: &str) -> Vec<String> {
    let list = server.get(key, "/v1/users").await;
    assert_eq!(list.status, 200, "{list:?}");
    let users = list.body["data"].as_array().unwrap().iter();
    users
        .map(|user| user["email"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_user_is_added_found_listed_and_changed() {
    let server = Server::start().await;

    let made = server
        .post(&server.owner, "/v1/users", new("Ada@Example.org", "admin"))
        .await;

    assert_eq!(made.status, 201, "{made:?}");
    let path = format!("/v1/users/{}", made.id());
    assert_eq!(made.header("location"), path);
    let names: Vec<&String> = made.body.as_object().unwrap().keys().collect();
    let expected = [
        "created_at",
        "email",
        "id",
        "name",
        "role",
        "status",
        "tenant_id",
        "updated_at",
    ];
    assert_eq!(names, expected);
    assert_eq!(made.body["email"], "Ada@Example.org");
    assert_eq!(made.body["status"], "active");
    assert_eq!(made.body["tenant_id"], json!(server.tenant));
    assert_eq!(server.get(&server.owner, &path).await.body, made.body);
    let listed = server.get(&server.owner, "/v1/users?limit=1").await;
    assert_eq!(listed.body["data"], json!([made.body]));
    assert!(listed.body["next_cursor"].is_string());

    let patch = json!({"name": "Ada", "role": "member", "status": "disabled"});
    let changed = server.patch(&server.owner, &path, patch).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    for (field, value) in [
        ("name", "Ada"),
        ("role", "member"),
        ("status", "disabled"),
        ("email", "Ada@Example.org"),
    ] {
        assert_eq!(changed.body[field], value);
    }
    assert_eq!(server.get(&server.owner, &path).await.body, changed.body);
}

#[tokio::test]
async fn an_address_is_taken_once_as_it_is_written() {
    let server = Server::start().await;
    let add = async |email: &str| {
        let body = new(email, "member");
        server.post(&server.owner, "/v1/users", body).await
    };

    add("member@example.org")
        .await
        .is_problem(409, "email_taken");
    assert_eq!(add("Member@example.org").await.status, 201);
    let elsewhere = new("new@example.org", "member");
    assert_eq!(add("new@example.org").await.status, 201);
    let made = server.post(&server.stranger, "/v1/users", elsewhere).await;
    assert_eq!(made.status, 201, "{made:?}");
}

#[tokio::test]
async fn what_is_wrong_with_a_user_is_listed_at_once() {
    let server = Server::start().await;

    let nothing = server.post(&server.owner, "/v1/users", json!({})).await;
    nothing.is_invalid(&[
        ("/email", "required"),
        ("/name", "required"),
        ("/role", "required"),
    ]);
    let body = json!({"email": " a@b", "name": "", "role": "king", "status": "active"});
    let wrong = server.post(&server.owner, "/v1/users?zzz=1", body).await;
    wrong.is_invalid(&[
        ("/email", "invalid_format"),
        ("/name", "empty"),
        ("/role", "invalid_format"),
        ("/status", "unknown_field"),
        ("/zzz", "unknown_field"),
    ]);
    let path = server.path_of(&server.member).await;
    let body = json!({"name": 7, "role": null, "status": "gone"});
    let wrong = server.patch(&server.owner, &path, body).await;
    wrong.is_invalid(&[
        ("/name", "invalid_type"),
        ("/role", "invalid_type"),
        ("/status", "invalid_format"),
    ]);
}

#[tokio::test]
async fn a_member_sees_himself_and_changes_his_name_alone() {
    let server = Server::start().await;
    let (own, owner) = (
        server.path_of(&server.member).await,
        server.path_of(&server.owner).await,
    );

    assert_eq!(
        emails(&server, &server.member).await,
        ["member@example.org"]
    );
    assert_eq!(server.get(&server.member, &own).await.status, 200);
    server
        .get(&server.member, &owner)
        .await
        .is_problem(404, "not_found");
    let named = server
        .patch(&server.member, &own, json!({"name": "M"}))
        .await;
    assert_eq!(
        (named.status.as_u16(), &named.body["name"]),
        (200, &json!("M"))
    );
    for patch in [
        json!({"role": "owner"}),
        json!({"role": "member"}),
        json!({"status": "active"}),
        json!({"name": "N", "status": "disabled"}),
    ] {
        let refused = server.patch(&server.member, &own, patch).await;
        refused.is_problem(403, "forbidden");
    }
    assert_eq!(server.get(&server.member, &own).await.body, named.body);
    let refused = server
        .post(&server.member, "/v1/users", new("x@y", "member"))
        .await;
    refused.is_problem(403, "forbidden");
}

#[tokio::test]
async fn only_an_owner_makes_changes_or_disables_an_owner() {
    let server = Server::start().await;
    let admin = server.another("admin@example.org", Role::Admin).await;
    let other = server.another("other@example.org", Role::Owner).await;
    let (owner, member) = (
        server.path_of(&other).await,
        server.path_of(&server.member).await,
    );
    let own = server.path_of(&admin).await;

    assert_eq!(emails(&server, &admin).await.len(), 4);
    let made = new("second@example.org", "owner");
    server
        .post(&admin, "/v1/users", made.clone())
        .await
        .is_problem(403, "forbidden");
    let patches = [
        (&owner, json!({"name": "x"})),
        (&owner, json!({"role": "member"})),
        (&owner, json!({"status": "disabled"})),
        (&member, json!({"role": "owner"})),
        (&own, json!({"role": "owner"})),
    ];
    for (path, patch) in &patches {
        let refused = server.patch(&admin, path, patch.clone()).await;
        refused.is_problem(403, "forbidden");
    }
    // He may do everything else.
    for (path, patch) in [
        (&member, json!({"role": "admin"})),
        (&member, json!({"role": "member", "status": "disabled"})),
        (&own, json!({"role": "member"})),
    ] {
        let done = server.patch(&admin, path, patch).await;
        assert_eq!(done.status, 200, "{done:?}");
    }

    let done = server.post(&server.owner, "/v1/users", made).await;
    assert_eq!(done.status, 201, "{done:?}");
    for (path, patch) in patches {
        let done = server.patch(&server.owner, path, patch).await;
        assert_eq!(done.status, 200, "{done:?}");
    }
}

#[tokio::test]
async fn a_role_and_a_status_hold_from_the_next_request_on() {
    let server = Server::start().await;
    let member = server.path_of(&server.member).await;
    let change = async |patch: Value| {
        let changed = server.patch(&server.owner, &member, patch).await;
        assert_eq!(changed.status, 200, "{changed:?}");
    };
    let status = async || {
        let list = server.get(&server.member, "/v1/audit-events").await;
        list.status.as_u16()
    };

    assert_eq!(status().await, 403);
    change(json!({"role": "admin"})).await;
    assert_eq!(status().await, 200);
    change(json!({"status": "disabled"})).await;
    assert_eq!(status().await, 401);
    change(json!({"status": "active", "role": "member"})).await;
    assert_eq!(status().await, 403);
}

#[tokio::test]
async fn d14_the_last_active_owner_is_neither_demoted_nor_disabled() {
    let server = Server::start().await;
    let path = server.path_of(&server.owner).await;

    for patch in [
        json!({"role": "admin"}),
        json!({"role": "member", "name": "x"}),
        json!({"status": "disabled"}),
    ] {
        let refused = server.patch(&server.owner, &path, patch).await;
        refused.is_problem(409, "last_owner");
    }
    assert_eq!(
        server.user_of(&server.owner).await["name"],
        "owner@example.org"
    );

    let second = server.another("second@example.org", Role::Owner).await;
    let stepped = server
        .patch(&server.owner, &path, json!({"role": "member"}))
        .await;
    assert_eq!(stepped.status, 200, "{stepped:?}");
    let path = server.path_of(&second).await;
    let refused = server
        .patch(&second, &path, json!({"status": "disabled"}))
        .await;
    refused.is_problem(409, "last_owner");
}

#[tokio::test]
async fn d12_nothing_in_a_body_says_who_somebody_is() {
    let server = Server::start().await;
    let stranger = server.user_of(&server.stranger).await;
    let path = server.path_of(&server.member).await;

    let mut body = new("a@b", "member");
    body["tenant_id"] = stranger["tenant_id"].clone();
    body["id"] = stranger["id"].clone();
    let refused = server.post(&server.owner, "/v1/users", body).await;
    refused.is_invalid(&[("/id", "unknown_field"), ("/tenant_id", "unknown_field")]);
    let body = json!({"tenant_id": stranger["tenant_id"], "email": "a@b", "created_at": "now"});
    let refused = server.patch(&server.owner, &path, body).await;
    refused.is_invalid(&[
        ("/created_at", "unknown_field"),
        ("/email", "unknown_field"),
        ("/tenant_id", "unknown_field"),
    ]);
    let body = json!({"name": "k", "tenant_id": stranger["tenant_id"], "prefix": "aaaaaaaaaaaa"});
    let refused = server.post(&server.owner, "/v1/api-keys", body).await;
    refused.is_invalid(&[
        ("/prefix", "unknown_field"),
        ("/tenant_id", "unknown_field"),
    ]);
}

/// A call of each kind on a user, and its answer with one request id.
async fn answers(server: &Server, key: &str, path: &str) -> Vec<(u16, String)> {
    let mut answers = Vec::new();
    for (method, body) in [
        (Method::GET, None),
        (Method::PATCH, Some(json!({"name": "x"}))),
        (Method::PATCH, Some(json!({"role": "king"}))),
    ] {
        let call = server.call(method, path).key(key);
        let call = call.header("x-request-id", "same");
        let call = match &body {
            Some(body) => call.json(body),
            None => call,
        };
        let Answer { status, text, .. } = call.send().await;
        answers.push((status.as_u16(), text));
    }
    answers
}

#[tokio::test]
async fn d16_a_foreign_user_is_answered_like_one_that_there_never_was() {
    let server = Server::start().await;
    let (owner, member) = (
        server.path_of(&server.owner).await,
        server.path_of(&server.member).await,
    );
    let expected = answers(&server, &server.owner, NEVER_ISSUED).await;
    assert!(expected.iter().all(|(status, _)| *status == 404));

    for (key, path) in [
        (&server.stranger, &owner),
        (&server.stranger, &member),
        (&server.member, &owner),
    ] {
        assert_eq!(answers(&server, key, path).await, expected);
    }
}

#[tokio::test]
async fn d17_a_malformed_id_is_one_that_was_never_issued() {
    let server = Server::start().await;
    let expected = answers(&server, &server.owner, NEVER_ISSUED).await;
    let own = server.path_of(&server.owner).await;
    let id = own.rsplit('/').next().unwrap();

    for malformed in [
        "not-a-uuid",
        "%00",
        "%ff",
        &id.to_uppercase(),
        &format!("%7B{id}%7D"),
        &"a".repeat(10_000),
    ] {
        let path = format!("/v1/users/{malformed}");
        assert_eq!(answers(&server, &server.owner, &path).await, expected);
    }
}

#[tokio::test]
async fn d27_names_are_short_and_hold_no_controls() {
    let server = Server::start().await;
    let path = server.path_of(&server.owner).await;
    let long = "é".repeat(201);
    let marks = format!("e{}", "\u{301}".repeat(1_000));
    for (name, code) in [
        ("a\r\nset-cookie: b", "invalid_text"),
        ("\u{1b}[2J", "invalid_text"),
        ("exe.\u{202e}fdp", "invalid_text"),
        ("a\0b", "invalid_text"),
        (" ", "empty"),
        (&long, "out_of_range"),
        (&marks, "out_of_range"),
    ] {
        let body = json!({"email": "a@b", "name": name, "role": "member"});
        let user = server.post(&server.owner, "/v1/users", body).await;
        let renamed = server
            .patch(&server.owner, &path, json!({"name": name}))
            .await;
        let key = server
            .post(&server.owner, "/v1/api-keys", json!({"name": name}))
            .await;
        for answer in [user, renamed, key] {
            answer.is_invalid(&[("/name", code)]);
        }
    }

    let kept = "<b>\u{1f469}\u{200d}\u{1f4bb}</b> \u{645}\u{6cc}\u{200c}\u{62e} e\u{301}";
    let renamed = server
        .patch(&server.owner, &path, json!({"name": kept}))
        .await;
    assert_eq!(renamed.body["name"], kept);
}

#[tokio::test]
async fn a_walk_by_cursors_sees_every_user_once() {
    let server = Server::start().await;
    for n in 0..4 {
        server
            .another(&format!("n{n}@example.org"), Role::Member)
            .await;
    }
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/users?limit=2{cursor}");
        let page = server.get(&server.owner, &path).await;
        let users = page.body["data"].as_array().unwrap();
        walked.extend(users.iter().map(|user| user["email"].clone()));
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }

    let mut expected: Vec<_> = (0..4).map(|n| format!("n{n}@example.org")).collect();
    expected.reverse();
    expected.extend(["member@example.org", "owner@example.org"].map(str::to_owned));
    assert_eq!(json!(walked), json!(expected));
    let foreign = format!("/v1/api-keys?limit=2{cursor}");
    server
        .get(&server.owner, &foreign)
        .await
        .is_problem(400, "invalid_cursor");
}

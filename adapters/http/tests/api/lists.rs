//! Lists in pieces, and their cursors.

use serde_json::json;

use crate::support::Server;

/// Every item of a list, by its cursors.
async fn walk(server: &Server, path: &str, limit: u32) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server
            .get(&server.owner, &format!("{path}limit={limit}{cursor}"))
            .await;
        assert_eq!(page.status, 200, "{page:?}");
        let data = page.body["data"].as_array().unwrap();
        assert!(data.len() <= limit as usize);
        ids.extend(
            data.iter()
                .map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn a_walk_by_cursors_sees_everything_once_newest_first() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(server.session(&server.owner, "helper").await);
    }
    made.reverse();

    for limit in [1, 3, 7, 200] {
        let walked = walk(&server, "/v1/sessions?", limit).await;
        let walked: Vec<_> = walked
            .iter()
            .map(|id| format!("/v1/sessions/{id}"))
            .collect();
        assert_eq!(walked, made, "{limit}");
    }
}

#[tokio::test]
async fn messages_are_walked_oldest_first_and_from_a_number() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let messages = format!("{session}/messages");
    let mut made = Vec::new();
    for n in 1..=5 {
        let body = json!({"content": format!("message {n}")});
        let answer = server.post(&server.owner, &messages, body).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["seq"]),
            (201, &json!(n))
        );
        made.push(answer.id());
    }

    assert_eq!(walk(&server, &format!("{messages}?"), 2).await, made);
    let path = format!("{messages}?after_seq=3&");
    assert_eq!(walk(&server, &path, 1).await, made[3..]);
}

#[tokio::test]
async fn a_limit_is_1_to_200_and_50_by_default() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    for _ in 0..51 {
        server.session(&server.owner, "helper").await;
    }

    let page = server.get(&server.owner, "/v1/sessions").await;
    assert_eq!(page.body["data"].as_array().unwrap().len(), 50);
    for (limit, code) in [
        ("0", "out_of_range"),
        ("201", "out_of_range"),
        ("-1", "out_of_range"),
        ("1000000000000000000000000", "out_of_range"),
        ("ten", "invalid_format"),
        ("1.5", "invalid_format"),
        ("", "invalid_format"),
        ("1&limit=2", "invalid_format"),
    ] {
        let path = format!("/v1/sessions?limit={limit}");
        let answer = server.get(&server.owner, &path).await;
        answer.is_invalid(&[("/limit", code)]);
    }
}

#[tokio::test]
async fn a_cursor_that_was_altered_or_is_of_another_list_is_refused() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    server.session(&server.owner, "helper").await;
    let page = server.get(&server.owner, "/v1/sessions?limit=1").await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let refused = async |path: &str, cursor: &str| {
        let answer = server
            .get(&server.owner, &format!("{path}cursor={cursor}"))
            .await;
        answer.is_problem(400, "invalid_cursor");
    };

    for at in 0..cursor.len() {
        let other = if &cursor[at..=at] == "A" { "B" } else { "A" };
        let altered = format!("{}{other}{}", &cursor[..at], &cursor[at + 1..]);
        refused("/v1/sessions?", &altered).await;
    }
    for broken in [
        "",
        "%00",
        "é",
        &cursor[1..],
        &format!("{cursor}A"),
        &"A".repeat(4096),
    ] {
        refused("/v1/sessions?", broken).await;
    }
    refused("/v1/agents?", cursor).await;
    refused("/v1/runs?", cursor).await;
    refused(&format!("{session}/runs?"), cursor).await;
    refused("/v1/sessions?agent=helper&", cursor).await;
}

#[tokio::test]
async fn a_cursor_carries_no_rights() {
    let server = Server::start().await;
    server.owners_session().await;
    server.session(&server.owner, "helper").await;
    let page = server.get(&server.owner, "/v1/sessions?limit=1").await;
    let cursor = page.body["next_cursor"].as_str().unwrap();

    let path = format!("/v1/sessions?cursor={cursor}");
    let others = server.get(&server.stranger, &path).await;

    assert_eq!(others.body, json!({"data": [], "next_cursor": null}));
}

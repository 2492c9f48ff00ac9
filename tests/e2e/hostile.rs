//! What anybody can send to the real process, and what it keeps of that.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::support::api::{list, text};
use super::support::home::KEY;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::world::{Plan, World};

/// As many as would fill the places of a server that lets them wait for nothing.
const HALF_REQUESTS: usize = 5000;

/// The largest body, as the variable has it.
const MAX_BODY: usize = 1 << 20;

on_both_stores! {
    d27_hostile_texts_come_back_byte_for_byte
    d27_a_text_as_long_as_a_body_may_be_comes_back_byte_for_byte
    d31_what_the_database_says_is_for_the_log
    d37_rows_that_come_in_neither_repeat_nor_hide_others
    d37_pages_of_large_rows_are_short_and_lose_none
}

/// Texts that somebody in between might want to mend.
fn hostile_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "\u{1}\u{2}\u{7f}\u{80}\u{9f}",
        "\r\n\t\u{b}\u{c}\u{1b}[2J\u{1b}]0;title\u{7}",
        "\u{202e}\u{2066}bidi\u{2069}\u{202c}\u{200f}",
        "\u{200b}\u{200d}\u{2060}\u{feff}zero\u{ad}width",
        "\u{fffd}\u{fffe}\u{ffff}\u{10ffff}\u{e000}",
        "e\u{301} \u{e9} \u{212b} \u{fb01} \u{1e9e}\u{df}",
        "😀 👩‍👩‍👧‍👦 🇦🇹 \u{1f1e6}",
        "\\u0000 \\ud800 \\\\ \\\" \\n",
        "'; drop table sessions; --",
        "<script>alert(1)</script><img src=x onerror=alert(1)> javascript:",
        "\n\ndata: {\"state\":\"succeeded\"}\n\nevent: x\nid: 1\n\n",
        "{\"level\":\"error\",\"message\":\"made up\"}",
        "%00 %s %n ${jndi:ldap://x} {{7*7}} ../../etc/passwd",
        "\u{2028}\u{2029}\u{85}",
        "   leading and trailing   ",
        "",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push(format!("a{}", "\u{301}".repeat(100_000)));
    texts.push("\u{1f600}".repeat(20_000));
    texts
}

async fn d27_hostile_texts_come_back_byte_for_byte(kind: Kind) {
    let world = Plan::on(kind, &[])
        .await
        .start(|_| Reply::text("done"))
        .await;
    let api = &world.api;
    let session = api.open_session().await;
    let path = format!("/v1/sessions/{session}");
    for said in hostile_texts() {
        let metadata = json!({"value": said, format!("k{said}"): [said, {"deep": said}]});
        let patch = json!({"metadata": metadata});
        assert_eq!(
            api.patch(&path, &patch).await.expect(200)["metadata"],
            metadata
        );
        assert_eq!(api.get(&path).await.expect(200)["metadata"], metadata);
        if said.trim().is_empty() {
            continue;
        }
        let message = json!({"content": said});
        let made = api
            .post(&format!("{path}/messages"), &message)
            .await
            .expect(201);
        assert_eq!(made["content"][0]["text"], said);
    }
    let kept: Vec<_> = api.messages(&session).await;
    let kept: Vec<_> = kept
        .iter()
        .map(|it| text(&it["content"][0]["text"]))
        .collect();
    let said = hostile_texts()
        .into_iter()
        .filter(|said| !said.trim().is_empty());
    assert!(kept.iter().eq(&said.collect::<Vec<_>>()));

    // The model is sent what the user said, and its answer is kept as it came.
    let hostile = hostile_texts().swap_remove(10);
    let run = world.start_run(&hostile).await;
    let ended = api.ended(&run.id).await;
    assert_eq!(ended["state"], "succeeded", "{ended:#}");
    assert_eq!(ended["input"][0]["text"], hostile);
    let asked = world.provider.asked();
    let told = &asked[0].ask.messages;
    let is_told = |message: &Value| {
        let content = &message["content"];
        content == hostile.as_str() || content[0]["text"] == hostile.as_str()
    };
    assert!(told.iter().any(is_told), "{told:#?}");
}

async fn d27_a_text_as_long_as_a_body_may_be_comes_back_byte_for_byte(kind: Kind) {
    let world = Plan::on(kind, &[])
        .await
        .start(|_| Reply::text("done"))
        .await;
    let api = &world.api;
    let session = api.open_session().await;
    let messages = format!("/v1/sessions/{session}/messages");
    let frame = json!({"content": ""}).to_string().len();
    let mut said = "\u{1f600}\u{202e}\u{301}\u{1}".repeat(20_000);
    let room = MAX_BODY - frame - (json!(said).to_string().len() - 2);
    said.push_str(&"x".repeat(room));
    let body = json!({"content": said});
    assert_eq!(body.to_string().len(), MAX_BODY);

    let made = api.post(&messages, &body).await.expect(201);

    assert!(made["content"][0]["text"] == said);
    let kept = api.messages(&session).await;
    assert!(kept[0]["content"][0]["text"] == said);
    let longer = json!({"content": format!("{said}x")});
    let refused = api.post(&messages, &longer).await.expect(413);
    assert_eq!(refused["code"], "body_too_large");
    assert_eq!(api.messages(&session).await.len(), 1);
}

async fn d37_pages_of_large_rows_are_short_and_lose_none(kind: Kind) {
    let world = Plan::on(kind, &[])
        .await
        .start(|_| Reply::text("done"))
        .await;
    let api = &world.api;
    let large = "x".repeat(MAX_BODY - 100);
    let metadata = json!({"large": large});
    let (session, mut sessions) = (api.open_session().await, Vec::new());
    let messages = format!("/v1/sessions/{session}/messages");
    for _ in 0..6 {
        let said = json!({"content": large});
        api.post(&messages, &said).await.expect(201);
        let session = json!({"agent": "agent", "metadata": metadata});
        let session = api.post("/v1/sessions", &session).await.expect(201);
        let id = text(&session["id"]);
        let run = json!({"input": "x", "metadata": metadata});
        let run = api.post(&format!("/v1/sessions/{id}/runs"), &run).await;
        run.expect(202);
        sessions.insert(0, session["id"].clone());
    }
    sessions.push(json!(session));
    for (path, ids, expected) in [
        (&*messages, "seq", (1..=6).map(Value::from).collect()),
        ("/v1/runs", "session_id", sessions[..6].to_vec()),
        ("/v1/sessions", "id", sessions),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = api.get(&format!("{path}?limit=200{cursor}")).await;
            let page = page.expect(200);
            assert!(page.to_string().len() < 5 * MAX_BODY + 10_000, "{path}");
            seen.extend(list(&page).into_iter().map(|it| it[ids].clone()));
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, expected, "{path}");
    }
}

async fn d31_what_the_database_says_is_for_the_log(kind: Kind) {
    let world = Plan::on(kind, &[])
        .await
        .start(|_| Reply::text("done"))
        .await;
    let api = &world.api;
    let session = api.open_session().await;
    let agent = json!({"slug": "agent", "provider": "openai", "model": "test"});
    let id = "0199a000-0000-7000-8000-00000000ffff";
    let quoted = "'%22%3B--";
    let answers = [
        (409, api.post("/v1/agents", &agent).await),
        (
            422,
            api.post("/v1/sessions", &json!({"agent": quoted})).await,
        ),
        (404, api.get(&format!("/v1/sessions/{quoted}")).await),
        (
            404,
            api.get(&format!("/v1/sessions/{}", id.to_uppercase()))
                .await,
        ),
        (404, api.get(&format!("/v1/sessions/%7B{id}%7D")).await),
        (
            404,
            api.get(&format!("/v1/runs/{}", "9".repeat(10_000))).await,
        ),
        (422, api.get(&format!("/v1/runs?session_id={quoted}")).await),
        (422, api.get("/v1/sessions?created_by=1%20or%201%3D1").await),
        (
            422,
            api.get(&format!(
                "/v1/sessions/{session}/messages?after_seq=99999999999999999999"
            ))
            .await,
        ),
        (
            200,
            api.get(&format!(
                "/v1/sessions/{session}/messages?after_seq=9223372036854775807"
            ))
            .await,
        ),
        (422, api.get("/v1/usage?from=-271821-04-20T00:00:00Z").await),
        (422, api.get("/v1/usage?from=0000-01-01T00:00:00Z").await),
        (
            200,
            api.get("/v1/usage?from=0000-01-01T00:00:00Z&to=0000-02-01T00:00:00Z")
                .await,
        ),
        (
            200,
            api.get("/v1/usage?from=9999-01-01T00:00:00Z&to=9999-12-31T23:59:59Z")
                .await,
        ),
    ];
    for (status, answer) in answers {
        assert_eq!(answer.status, status, "{answer:#?}");
        let said = answer.body.to_string().to_lowercase();
        for word in [
            "sql",
            "postgres",
            "constraint",
            "syntax",
            "select",
            "uuid",
            "unique",
            "column",
            "hango.db",
        ] {
            assert!(!said.contains(word), "{word} in {said}");
        }
    }
}

async fn d37_rows_that_come_in_neither_repeat_nor_hide_others(kind: Kind) {
    let world = Plan::on(kind, &[])
        .await
        .start(|_| Reply::text("done"))
        .await;
    let api = &world.api;
    let open = async |count: usize| {
        let mut ids = Vec::new();
        while ids.len() < count {
            let many = (ids.len()..count.min(ids.len() + 8)).map(|_| api.open_session());
            ids.extend(futures::future::join_all(many).await);
        }
        ids
    };
    let mut made = open(200).await;
    let mut walked = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api
            .get(&format!("/v1/sessions?limit=9{cursor}"))
            .await
            .expect(200);
        walked.extend(list(&page).iter().map(|session| text(&session["id"])));
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
        open(20).await;
    }

    // Those of one moment are in any order.
    made.sort();
    walked.sort();
    assert_eq!(walked, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn d19_thousands_of_half_requests_leave_room_for_whole_ones() {
    let mut world = World::start(&[], |_| Reply::text("done")).await;
    let address = world.hango().address().await;
    let mut half = Vec::with_capacity(HALF_REQUESTS);
    for n in 0..HALF_REQUESTS {
        let mut stream = TcpStream::connect(&address)
            .await
            .expect("it is accepted, or waits");
        // Some are silent, some begin a head, some a body.
        let begun = match n % 3 {
            0 => String::new(),
            1 => "GET /v1/me HTTP/1.1\r\nhost: x\r\nauthorization: Bea".to_owned(),
            _ => format!(
                "POST /v1/sessions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
                 content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
            ),
        };
        stream
            .write_all(begun.as_bytes())
            .await
            .expect("it is taken");
        half.push(stream);
    }

    let run = tokio::time::timeout(Duration::from_secs(20), async {
        let run = world.start_run("hello").await;
        world.api.ended(&run.id).await
    });

    assert_eq!(run.await.expect("the API answers")["state"], "succeeded");
    assert_eq!(half.len(), HALF_REQUESTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn d29_a_name_makes_no_line_of_the_log() {
    let mut world = World::start(&[("HANGO_LOG", "trace")], |_| Reply::text("done")).await;
    let evil = "\u{1b}[2J\n{\"level\":\"error\",\"message\":\"made up\"}";
    let mut agent = json!({"slug": "evil", "name": evil, "provider": "openai", "model": evil});
    world.api.post("/v1/agents", &agent).await.expect(422);
    // What is shown in lists may not be that; what is only read may.
    agent["name"] = json!("Evil");
    agent["model"] = json!("model");
    agent["description"] = json!(evil);
    agent["system_prompt"] = json!(evil);
    world.api.post("/v1/agents", &agent).await.expect(201);
    let session = world
        .api
        .post("/v1/sessions", &json!({"agent": "evil", "title": evil}))
        .await;
    let session = text(&session.expect(201)["id"]);
    let run = world.start_run_in(&session, evil).await;
    world.api.ended(&run.id).await;
    world
        .api
        .get("/v1/runs?cursor=%0a%7b%22level%22%3a%22error%22%7d")
        .await
        .expect(400);
    world
        .api
        .get(&format!("/v1/sessions/{}", "%0a%1b%5b2J"))
        .await
        .expect(404);
    let address = world.hango().address().await;
    let mut stream = TcpStream::connect(&address).await.expect("it listens");
    let raw = "GET /\u{1b}[2J HTTP/1.1\r\nhost: \u{1b}\r\nx-request-id: \u{1b}\r\n\r\n";
    stream.write_all(raw.as_bytes()).await.expect("it is taken");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("it is answered");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");

    let log = world.hango().logged();

    let mut lines = 0;
    for line in log.lines().filter(|line| !line.is_empty()) {
        let entry: Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?} is no entry"));
        assert_ne!(entry["message"], "made up", "{line}");
        assert!(!line.contains('\u{1b}'), "{line:?}");
        lines += 1;
    }
    assert!(lines > 3, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d44_whoever_has_no_key_learns_whether_it_lives_and_no_more() {
    let world = World::start(&[], |_| Reply::text("done")).await;
    let run = world.start_run("hello").await;
    world.api.ended(&run.id).await;
    let nobody = world.api.with_key(None);

    assert_eq!(
        nobody.get("/healthz").await.expect(200),
        json!({"status": "ok"})
    );
    assert_eq!(
        nobody.get("/readyz").await.expect(200),
        json!({"status": "ready"})
    );
    for path in [
        "/debug/pprof",
        "/debug/vars",
        "/server-status",
        "/actuator",
        "/env",
        "/.env",
    ] {
        nobody.get(path).await.expect(404);
    }
    for path in [
        "/v1/me",
        "/v1/usage",
        "/v1/tools",
        "/v1/providers",
        "/v1/runs",
    ] {
        nobody.get(path).await.expect(401);
    }
}

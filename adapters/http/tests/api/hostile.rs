//! What a body, a query and a cursor may hold, to their limits and beyond.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, MAX_BODY, Server};

async fn patched(server: &Server, session: &str, body: impl Into<axum::body::Body>) -> Answer {
    let call = server.call(Method::PATCH, session).key(&server.owner);
    let call = call.header("content-type", "application/json");
    call.body(body).send().await
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[tokio::test]
async fn d20_what_is_not_too_deep_comes_back_and_what_is_is_refused() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    // The body and the metadata are levels too.
    for (levels, status) in [
        (31, 200),
        (32, 200),
        (33, 400),
        (127, 400),
        (128, 400),
        (8_000, 400),
    ] {
        let body = format!(r#"{{"metadata": {{"d": {}}}}}"#, nested(levels - 2));
        let answer = patched(&server, &session, body).await;
        assert_eq!(answer.status, status, "{levels}");
        if status == 400 {
            answer.is_problem(400, "malformed_json");
        } else {
            let read = server.get(&server.owner, &session).await;
            assert_eq!(read.body["metadata"]["d"].to_string(), nested(levels - 2));
        }
    }
}

#[tokio::test]
async fn d21_a_list_or_an_object_has_10000_entries_at_most() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let wide = |items: usize| format!(r#"{{"metadata": {{"w": [{}1]}}}}"#, "1,".repeat(items - 1));
    assert!(wide(10_001).len() < MAX_BODY * 2);
    // Its own limit comes first where bodies are small, as they are here.
    let server = server.starting(|api| {
        hango_http::router(hango_http::Api {
            max_body_bytes: 1 << 20,
            ..api
        })
    });
    server.readiness.start();

    assert_eq!(patched(&server, &session, wide(10_000)).await.status, 200);
    let answer = patched(&server, &session, wide(10_001)).await;
    answer.is_problem(400, "malformed_json");
    let fields: Vec<_> = (0..10_001).map(|n| format!(r#""k{n}":0"#)).collect();
    let answer = patched(&server, &session, format!("{{{}}}", fields.join(","))).await;
    answer.is_problem(400, "malformed_json");
}

#[tokio::test]
async fn d22_a_name_that_is_there_twice_is_refused() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    for body in [
        r#"{"title": "good", "title": "evil"}"#,
        r#"{"metadata": {"url": "good", "\u0075rl": "evil"}}"#,
    ] {
        patched(&server, &session, body)
            .await
            .is_problem(400, "malformed_json");
    }
    let read = server.get(&server.owner, &session).await;
    assert_eq!(read.body["title"], "");
}

#[tokio::test]
async fn d23_the_null_character_is_refused_in_every_kind_of_field() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let (runs, messages) = (format!("{session}/runs"), format!("{session}/messages"));
    let agent = json!({
        "slug": "a\0", "provider": "demo", "model": "m\0", "name": "n\0", "description": "\0",
        "system_prompt": "\0", "tools": ["get_time\0"], "metadata": {"\0": "\0"}, "\0": 1,
    });
    let answer = server.post(&server.owner, "/v1/agents", agent).await;
    let found = answer.entries();
    for pointer in [
        "/\0",
        "/description",
        "/metadata/\0",
        "/model",
        "/name",
        "/slug",
        "/system_prompt",
        "/tools/0",
    ] {
        let entry = (pointer.to_owned(), "invalid_text".to_owned());
        assert!(found.contains(&entry), "{pointer:?} of {found:?}");
    }
    for (path, body, pointer) in [
        (
            "/v1/sessions",
            json!({"agent": "helper", "title": "\0"}),
            "/title",
        ),
        (&*messages, json!({"content": "a\0"}), "/content"),
        (
            &*messages,
            json!({"content": [{"type": "text", "text": "\0"}]}),
            "/content/0/text",
        ),
        (&*runs, json!({"input": "\0"}), "/input"),
        (
            &*runs,
            json!({"input": "a", "metadata": {"a/b~": ["\0"]}}),
            "/metadata/a~1b~0/0",
        ),
    ] {
        let answer = server.post(&server.owner, path, body).await;
        answer.is_invalid(&[(pointer, "invalid_text")]);
    }
    // In a path it is an id that was never issued, in a query no value that anything has.
    for path in ["/v1/agents/a%00", "/v1/sessions/%00", "/v1/runs/%00"] {
        server
            .get(&server.owner, path)
            .await
            .is_problem(404, "not_found");
    }
    let answer = server.get(&server.owner, "/v1/sessions?agent=%00").await;
    answer.is_invalid(&[("/agent", "invalid_format")]);
}

#[tokio::test]
async fn d23_a_body_full_of_null_characters_has_an_answer_of_its_own_size() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let nulls = vec!["\0"; 1000];
    let body = json!({"metadata": {"k".repeat(4096): nulls}});

    let answer = server.patch(&server.owner, &session, body).await;

    let found = answer.entries();
    assert!((1..1000).contains(&found.len()), "{}", found.len());
    assert!(answer.text.len() < 100 * 1024, "{}", answer.text.len());
}

#[tokio::test]
async fn d24_half_a_character_is_no_text() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    for text in [
        r"\ud800",
        r"\udc00",
        r"\ud83d\u0041",
        r"\ude00\ud83d",
        r"\ud83d",
    ] {
        for body in [
            format!(r#"{{"title": "{text}"}}"#),
            format!(r#"{{"metadata": {{"{text}": 1}}}}"#),
        ] {
            patched(&server, &session, body)
                .await
                .is_problem(400, "malformed_json");
        }
    }
    let whole = patched(&server, &session, r#"{"title": "\ud83d\ude00"}"#).await;
    assert_eq!(whole.body["title"], "\u{1f600}");
}

#[tokio::test]
async fn d25_what_is_not_utf_8_is_no_text() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    for bytes in [
        &[0xff][..],
        &[0xc0, 0x80],
        &[0xed, 0xa0, 0x80],
        &[0xf0, 0x9f, 0x98],
        &[0xf4, 0x90, 0x80, 0x80],
    ] {
        let body = [br#"{"title": ""#, bytes, br#""}"#].concat();
        patched(&server, &session, body)
            .await
            .is_problem(400, "malformed_json");
    }
    // Cut anywhere on its way, a character is whole again.
    let body = r#"{"title": "😀"}"#.as_bytes();
    for at in 1..body.len() {
        let (one, other) = body.split_at(at);
        let chunks =
            [one, other].map(|it| Ok::<_, std::io::Error>(axum::body::Bytes::copy_from_slice(it)));
        let stream = axum::body::Body::from_stream(futures::stream::iter(chunks));
        assert_eq!(patched(&server, &session, stream).await.body["title"], "😀");
    }
}

#[tokio::test]
async fn d26_numbers_come_back_as_they_were_or_are_refused() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let kept = async |number: &str| {
        let body = format!(r#"{{"metadata": {{"n": {number}}}}}"#);
        let answer = patched(&server, &session, body).await;
        assert_eq!(answer.status, 200, "{number}: {answer:?}");
        let read = server.get(&server.owner, &session).await;
        read.body["metadata"]["n"].to_string()
    };
    for exact in [
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "0.1",
        "0",
    ] {
        assert_eq!(kept(exact).await, exact);
    }
    for wide in [
        "18446744073709551616",
        "-9223372036854775809",
        &"9".repeat(300),
    ] {
        let body = format!(r#"{{"metadata": {{"n": [0, {wide}]}}}}"#);
        let refused = patched(&server, &session, body).await;
        refused.is_invalid(&[("/metadata/n/1", "out_of_range")]);
    }
    assert_eq!(kept("-0").await, "-0.0");
    assert_eq!(kept("1e-400").await, "0.0");
    let long = "9".repeat(400);
    for number in [
        "1e400", "-1e400", &long, "01", "+1", ".5", "1.", "0x10", "NaN", "Infinity",
    ] {
        let body = format!(r#"{{"metadata": {{"n": {number}}}}}"#);
        patched(&server, &session, body)
            .await
            .is_problem(400, "malformed_json");
    }
    for (number, code) in [
        ("9007199254740993", "out_of_range"),
        ("18446744073709551616", "out_of_range"),
        ("-0", "out_of_range"),
        ("1e30", "out_of_range"),
        ("0.5", "invalid_type"),
    ] {
        let body =
            format!(r#"{{"slug": "a", "provider": "demo", "model": "m", "max_tokens": {number}}}"#);
        let call = server.call(Method::POST, "/v1/agents").key(&server.owner);
        let answer = call
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await;
        answer.is_invalid(&[("/max_tokens", code)]);
    }
    for limit in ["0", "-1", "1000000000", "18446744073709551616", "1e2"] {
        let answer = server
            .get(&server.owner, &format!("/v1/runs?limit={limit}"))
            .await;
        assert_eq!(answer.entries().len(), 1, "{limit}");
    }
}

#[tokio::test]
async fn d36_a_cursor_with_any_bit_changed_is_refused() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    server.session(&server.owner, "helper").await;
    let page = server.get(&server.owner, "/v1/sessions?limit=1").await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(cursor).unwrap();
    let ask = async |cursor: &str| {
        let path = format!("/v1/sessions?cursor={cursor}");
        server.get(&server.owner, &path).await
    };
    let rest = ask(cursor).await;
    assert_eq!(
        format!(
            "/v1/sessions/{}",
            rest.body["data"][0]["id"].as_str().unwrap()
        ),
        session
    );

    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut altered = bytes.clone();
            altered[at] ^= 1 << bit;
            let altered = URL_SAFE_NO_PAD.encode(altered);
            ask(&altered).await.is_problem(400, "invalid_cursor");
        }
    }
    for at in 0..cursor.len() {
        let mut altered = cursor.as_bytes().to_vec();
        altered[at] ^= 1;
        let altered: Vec<_> = altered.iter().map(|byte| format!("%{byte:02x}")).collect();
        ask(&altered.concat())
            .await
            .is_problem(400, "invalid_cursor");
    }
    for broken in [
        "",
        "%00",
        "A",
        &cursor[1..],
        &format!("{cursor}="),
        &"A".repeat(10_000),
    ] {
        ask(broken).await.is_problem(400, "invalid_cursor");
    }
}

#[tokio::test]
async fn d37_rows_that_come_in_neither_repeat_nor_hide_others() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let mut made = Vec::new();
    for _ in 0..500 {
        made.push(server.session(&server.owner, "helper").await);
    }
    made.reverse();
    let mut walked = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/sessions?limit=7{cursor}");
        let page = server.get(&server.owner, &path).await;
        for item in page.body["data"].as_array().unwrap() {
            walked.push(format!("/v1/sessions/{}", item["id"].as_str().unwrap()));
        }
        for _ in 0..14 {
            server.session(&server.owner, "helper").await;
        }
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }

    assert_eq!(walked, made);
}

#[tokio::test]
async fn d38_no_other_site_is_let_in() {
    let server = Server::start().await;
    for origin in [
        "null",
        "https://evil.example",
        "http://127.0.0.1:8080",
        "http://localhost:1",
    ] {
        let answers = [
            server
                .call(Method::GET, "/v1/me")
                .key(&server.owner)
                .header("origin", origin),
            server
                .call(Method::OPTIONS, "/v1/agents")
                .header("origin", origin)
                .header("access-control-request-method", "POST")
                .header("access-control-request-headers", "authorization"),
        ];
        for call in answers {
            let answer = call.send().await;
            let mut names = answer.headers.keys().map(http::HeaderName::as_str);
            assert!(
                !names.any(|name| name.starts_with("access-control-")),
                "{answer:?}"
            );
        }
    }
    let preflight = server.call(Method::OPTIONS, "/v1/agents").send().await;
    preflight.is_problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_name_that_is_nearly_right_is_answered_with_the_right_one() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let detail = |answer: &Answer| {
        answer.is_problem(422, "validation");
        answer.body["errors"][0]["detail"]
            .as_str()
            .unwrap()
            .to_owned()
    };

    let body = json!({"titel": "x"});
    let field = detail(&server.patch(&server.owner, &session, body).await);
    assert_eq!(field, r#"there is no such field; did you mean "title"?"#);
    let body =
        json!({"slug": "a", "provider": "demo", "model": "m", "limits": {"max_iteration": 1}});
    let inside = detail(&server.post(&server.owner, "/v1/agents", body).await);
    assert_eq!(
        inside,
        r#"there is no such field; did you mean "max_iterations"?"#
    );
    let parameter = detail(&server.get(&server.owner, "/v1/runs?sesion_id=x").await);
    assert_eq!(
        parameter,
        r#"there is no such parameter; did you mean "session_id"?"#
    );
    let long: Value = json!({"t".repeat(10_000): 1, "lane": 1});
    for answer in [
        server.patch(&server.owner, &session, long).await,
        server.get(&server.owner, "/v1/runs?api_key=x").await,
    ] {
        assert!(!answer.text.contains("did you mean"), "{answer:?}");
    }
}

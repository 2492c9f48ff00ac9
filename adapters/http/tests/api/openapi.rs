//! The API's description and the API say the same.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use hango_domain::access::Role;

use crate::support::{ADMIN_TOKEN, Answer, Server};

/// An operation of the description.
struct Operation {
    method: Method,
    path: String,
    described: Value,
}

async fn document(server: &Server) -> Value {
    let answer = server.call(Method::GET, "/openapi.json").send().await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "application/json");
    answer.body
}

/// Every operation of the contract's, in the document's order.
fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().unwrap().iter();
    let calls = paths.filter(|(path, _)| path.starts_with("/v1/"));
    let operations = calls.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(|(method, described)| Operation {
            method: method.to_uppercase().parse().unwrap(),
            path: path.clone(),
            described: described.clone(),
        })
    });
    operations.collect()
}

/// What a reference stands for, or the value itself.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    reference.map_or(value, |at| document.pointer(at).unwrap())
}

impl Operation {
    /// What opens it.
    fn key<'s>(&self, server: &'s Server) -> &'s str {
        match self.path.strip_prefix("/v1/admin/") {
            Some(_) => ADMIN_TOKEN,
            None => &server.owner,
        }
    }
}

/// Paths of things that are there.
async fn places(server: &Server) -> [(&'static str, String); 6] {
    let session = server.owners_session().await;
    let run = server.run(&server.owner, &session).await;
    let id = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let ada = server.another("ada@example.com", Role::Member).await;
    let me = server.get(&ada, "/v1/me").await.body;
    let named = |what: &str| me[what]["id"].as_str().unwrap().to_owned();
    [
        ("{agent}", "helper".to_owned()),
        ("{session}", id(&session)),
        ("{run}", id(&run)),
        ("{user}", named("user")),
        ("{key}", named("api_key")),
        ("{tenant}", named("tenant")),
    ]
}

fn at(places: &[(&str, String)], path: &str) -> String {
    let path = places
        .iter()
        .fold(path.to_owned(), |path, (name, id)| path.replace(name, id));
    assert!(!path.contains('{'), "nobody knows what {path} stands for");
    path
}

/// Where something is that nobody knows.
fn unknown(answer: &Answer) -> BTreeSet<String> {
    let entries = answer.entries().into_iter();
    let unknown = entries.filter(|(_, code)| code == "unknown_field");
    unknown.map(|(pointer, _)| pointer).collect()
}

#[tokio::test]
async fn the_document_is_one_and_whole() {
    let server = Server::start().await;
    let document = document(&server).await;

    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for operation in operations(&document) {
        let id = operation.described["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} is there twice");
        assert!(operation.described["summary"].is_string(), "{id}");
        let responses = operation.described["responses"].as_object().unwrap();
        for status in ["401", "422", "431", "503"] {
            assert!(responses.contains_key(status), "{id} {status}");
        }
        let done = responses.keys().filter(|status| status.starts_with('2'));
        assert_eq!(done.count(), 1, "{id}");
    }
    every_reference_leads_somewhere(&document, &document);
}

fn every_reference_leads_somewhere(document: &Value, value: &Value) {
    match value {
        Value::Array(values) => values
            .iter()
            .for_each(|value| every_reference_leads_somewhere(document, value)),
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                let at = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(at).is_some(), "{reference}");
            }
            for member in members.values() {
                every_reference_leads_somewhere(document, member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn a_body_is_read_as_it_is_described() {
    let server = Server::start().await;
    let document = document(&server).await;
    let places = places(&server).await;
    for operation in operations(&document) {
        let body = &operation.described["requestBody"]["content"]["application/json"]["schema"];
        if body.is_null() {
            continue;
        }
        let schema = resolved(&document, body);
        let at = at(&places, &operation.path);
        let send = async |body: Value| {
            let call = server.call(operation.method.clone(), &at);
            call.key(operation.key(&server)).json(&body).send().await
        };

        // No field is of this type, so that nothing is done.
        let odd = json!({"is": [["no", "field"]]});
        let fields = schema["properties"].as_object().unwrap();
        let mut all: Map<String, Value> =
            fields.keys().map(|it| (it.clone(), odd.clone())).collect();
        all.insert("nobody_knows".to_owned(), odd.clone());
        all.remove("metadata");
        let known = unknown(&send(all.into()).await);
        let nested = ["/limits/is", "/middleware/is", "/owner/is"].map(str::to_owned);
        let known: Vec<_> = known.iter().filter(|it| !nested.contains(it)).collect();
        assert_eq!(known, ["/nobody_knows"], "{}", operation.path);

        let required = schema["required"].as_array().cloned().unwrap_or_default();
        if required.is_empty() {
            continue;
        }
        let missing = send(json!({})).await.entries().into_iter();
        let missing = missing.filter(|(_, code)| code == "required");
        let missing: Vec<_> = missing.map(|(pointer, _)| pointer).collect();
        let mut described: Vec<_> = required
            .iter()
            .map(|name| format!("/{}", name.as_str().unwrap()))
            .collect();
        described.sort();
        assert_eq!(missing, described, "{}", operation.path);
    }
}

#[tokio::test]
async fn an_example_of_a_body_is_one_that_is_taken() {
    let server = Server::start().await;
    let document = document(&server).await;
    let places = places(&server).await;
    server.agent(&server.owner, "clock").await;
    for operation in operations(&document) {
        let body = &operation.described["requestBody"]["content"]["application/json"]["schema"];
        if body.is_null() {
            continue;
        }
        let mut example = resolved(&document, body)["example"].clone();
        assert!(example.is_object(), "{} has no example", operation.path);
        if operation.path == "/v1/agents" {
            example["slug"] = "another".into();
        }
        if operation.path == "/v1/admin/tenants" {
            example["slug"] = "new".into();
        }
        let call = server.call(operation.method.clone(), &at(&places, &operation.path));
        let answer = call.key(operation.key(&server)).json(&example).send().await;
        assert!(answer.status.is_success(), "{} {answer:?}", operation.path);
    }
}

#[tokio::test]
async fn a_query_is_read_as_it_is_described() {
    let server = Server::start().await;
    let document = document(&server).await;
    let places = places(&server).await;
    for operation in operations(&document) {
        let parameters = operation.described["parameters"].as_array().cloned();
        let parameters = parameters.unwrap_or_default();
        let named = parameters.iter().filter(|it| it["in"] == "query");
        // A cursor that is none is told of before the rest is looked at.
        let named = named.filter(|it| it["name"] != "cursor");
        let pairs = named.map(|it| format!("{}=%20", it["name"].as_str().unwrap()));
        let query = pairs.chain(["nobody_knows=1".to_owned()]);
        let query = query.collect::<Vec<_>>().join("&");
        let path = format!("{}?{query}", at(&places, &operation.path));
        let mut call = server.call(operation.method.clone(), &path);
        if !operation.described["requestBody"].is_null() {
            call = call.json(&json!({"nobody_knows_either": 1}));
        }
        let answer = call.key(operation.key(&server)).send().await;
        let unknown = unknown(&answer);
        let of_the_query: Vec<_> = unknown
            .iter()
            .filter(|it| !it.ends_with("either"))
            .collect();
        assert_eq!(of_the_query.len(), 1, "{path} {answer:?}");
        assert!(of_the_query[0].ends_with("nobody_knows"), "{unknown:?}");
    }
}

#[tokio::test]
async fn d40_the_page_shows_the_document_and_loads_nothing_from_elsewhere() {
    let server = Server::start().await;
    let page = server.call(Method::GET, "/docs/").send().await;

    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.header("content-type"), "text/html");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let policy = page.header("content-security-policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self';",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(page.text.contains("<title>hango's API</title>"));
    assert!(!page.text.contains("Swagger UI</title>"));
    let links = page.text.split(['"', '\'']);
    let is_asset = |link: &&str| matches!(link.rsplit_once('.'), Some((_, "js" | "css")));
    let links: Vec<_> = links.filter(is_asset).collect();
    assert!(links.len() >= 2, "{}", page.text);
    for link in links {
        let path = format!("/docs/{}", link.trim_start_matches("./"));
        let asset = server.call(Method::GET, &path).send().await;
        assert_eq!(asset.status, StatusCode::OK, "{path}");
    }
    let begun = server
        .call(Method::GET, "/docs/swagger-initializer.js")
        .send()
        .await;
    assert!(begun.text.contains("/openapi.json"), "{}", begun.text);
    assert!(!begun.text.contains("http://") && !begun.text.contains("https://"));
}

#[tokio::test]
async fn somebody_who_names_nothing_is_led_to_the_page() {
    let server = Server::start().await;
    for (path, to) in [("/", "/docs"), ("/docs", "/docs/")] {
        let led = server.call(Method::GET, path).send().await;
        assert_eq!(led.status, StatusCode::SEE_OTHER, "{path}");
        assert_eq!(led.header("location"), to);
        let document = document(&server).await;
        assert!(document["paths"][path].is_null(), "{path} is no call");
    }
}

#[tokio::test]
async fn what_the_page_does_not_have_is_answered_as_everywhere() {
    let server = Server::start().await;
    for path in ["/docs/nothing", "/docs/a/b.js", "/docs/%ff", "/docs/../v1"] {
        let nothing = server.call(Method::GET, path).send().await;
        nothing.is_problem(404, "not_found");
    }
    let posted = server.call(Method::POST, "/docs/").send().await;
    posted.is_problem(405, "method_not_allowed");
}

/// Every description of a whole number in `described`.
fn whole_numbers(described: &Value) -> Vec<&Value> {
    let inside = match described {
        Value::Object(members) => members.values().flat_map(whole_numbers).collect(),
        Value::Array(items) => items.iter().flat_map(whole_numbers).collect(),
        _ => Vec::new(),
    };
    let kind = &described["type"];
    let is_whole = kind == "integer"
        || kind
            .as_array()
            .is_some_and(|it| it.contains(&json!("integer")));
    is_whole
        .then_some(described)
        .into_iter()
        .chain(inside)
        .collect()
}

#[tokio::test]
async fn whole_numbers_are_described_without_a_sign_and_as_large_as_they_may_be() {
    let server = Server::start().await;
    let document = document(&server).await;

    let numbers = whole_numbers(&document);

    assert!(numbers.len() > 40, "{}", numbers.len());
    for number in numbers {
        assert!(number["format"].is_null(), "{number}");
        assert!(number["minimum"].as_u64().is_some(), "{number}");
    }
    let schema = &document["components"]["schemas"]["NewAgent"]["properties"]["max_tokens"];
    for (tokens, taken) in [(json!(0), false), (json!(u32::MAX), true)] {
        assert_eq!(jsonschema::is_valid(schema, &tokens), taken, "{tokens}");
        let body = json!({"slug": "a", "provider": "demo", "model": "m", "max_tokens": tokens});
        let made = server.post(&server.owner, "/v1/agents", body).await;
        assert_eq!(made.status == StatusCode::CREATED, taken, "{made:?}");
    }
}

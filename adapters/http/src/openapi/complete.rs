//! What many operations have in common, added by rule.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::refusals;
use crate::problem::Code;

/// What makes an operation of a path item; its other members are no operations.
const METHODS: [&str; 4] = ["get", "post", "patch", "delete"];

/// Completes the description of every operation.
pub(super) fn complete(document: &mut Value) {
    document["components"]["securitySchemes"] = json!({
        "key": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "hk_<prefix>_<secret>",
            "description": "An API key, in `Authorization`. Nothing else is looked at.",
        },
    });
    document["components"]["securitySchemes"]["operator"] = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "`HANGO_ADMIN_TOKEN`, in `Authorization`. While it is not set these calls do not exist.",
    });
    drop_signed_formats(document);
    document["components"]["headers"] = json!({
        "RequestId": {
            "description": "The request's id: the client's own, or one that was made.",
            "schema": {"type": "string"},
        },
    });
    let Some(paths) = document["paths"].as_object_mut() else {
        return;
    };
    for (path, item) in paths {
        let Some(item) = item.as_object_mut() else {
            continue;
        };
        for method in METHODS {
            if let Some(Value::Object(operation)) = item.get_mut(method) {
                one(path, method, operation);
            }
        }
    }
}

/// Takes away the formats of signed numbers: no number here has a sign, and one of 32 bits may be larger than
/// they say. That it is whole, and from what on, stays.
fn drop_signed_formats(described: &mut Value) {
    match described {
        Value::Object(members) => {
            if members
                .get("format")
                .is_some_and(|it| it == "int32" || it == "int64")
            {
                members.remove("format");
            }
            members.values_mut().for_each(drop_signed_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_signed_formats),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn one(path: &str, method: &str, operation: &mut Map<String, Value>) {
    let is_call = path.starts_with("/v1/");
    if is_call {
        let scheme = if path.starts_with("/v1/admin/") {
            "operator"
        } else {
            "key"
        };
        operation.insert("security".to_owned(), json!([{scheme: []}]));
    }
    if method == "post" && refusals::takes_idempotency_key(path) {
        add_parameter(operation, idempotency_key());
    }
    for parameter in operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        // It is left out, or text that says something.
        if let Some(Value::Array(types)) = parameter["schema"].get("type").cloned() {
            parameter["schema"]["type"] = types
                .into_iter()
                .find(|it| it != "null")
                .unwrap_or_default();
        }
        if parameter["schema"]["type"] == "string" {
            parameter["schema"]["minLength"] = 1.into();
        }
    }
    let mut problems: BTreeMap<StatusCode, Vec<Code>> = BTreeMap::new();
    for code in codes(path, is_call, operation) {
        problems.entry(code.status()).or_default().push(code);
    }
    let responses = operation.entry("responses").or_insert(json!({}));
    for (status, codes) in problems {
        responses[status.as_str()] = problem(&codes);
    }
    if method == "post" && refusals::takes_idempotency_key(path) {
        for (status, response) in responses.as_object_mut().into_iter().flatten() {
            if status.starts_with('2') {
                let what = "`true` where this answer was given before; absent else.";
                response["headers"]["idempotency-replayed"] =
                    json!({"description": what, "schema": {"type": "string"}});
            }
        }
    }
    for (status, response) in responses.as_object_mut().into_iter().flatten() {
        response["headers"]["x-request-id"] = json!({"$ref": "#/components/headers/RequestId"});
        if response["description"].is_null() {
            let status: Option<StatusCode> = status.parse().ok();
            let reason = status.and_then(|status| status.canonical_reason());
            response["description"] = reason.unwrap_or("Done").into();
        }
    }
}

/// What can go wrong in an operation.
fn codes(path: &str, is_call: bool, operation: &Map<String, Value>) -> Vec<Code> {
    let mut codes = vec![Code::HeadersTooLarge, Code::Internal];
    if is_call {
        codes.extend([
            Code::MalformedRequest,
            Code::Unauthenticated,
            Code::Validation,
            Code::RateLimited,
            Code::Unavailable,
        ]);
    }
    if path.contains('{') || path.starts_with("/v1/admin/") {
        codes.push(Code::NotFound);
    }
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let parameters = parameters.into_iter().flatten();
    if parameters.into_iter().any(|it| it["name"] == "cursor") {
        codes.push(Code::InvalidCursor);
    }
    if operation.contains_key("requestBody") {
        codes.extend([
            Code::MalformedJson,
            Code::RequestTimeout,
            Code::BodyTooLarge,
            Code::UnsupportedMediaType,
            Code::InsufficientStorage,
        ]);
    }
    let id = operation.get("operationId").and_then(Value::as_str);
    codes.extend(refusals::of(id.unwrap_or_default()));
    codes
}

fn problem(codes: &[Code]) -> Value {
    let lines = codes
        .iter()
        .map(|code| format!("`{}`: {}", code.word(), code.title()));
    let schema = json!({"$ref": "#/components/schemas/Problem"});
    let mut response = json!({
        "description": lines.collect::<Vec<_>>().join("; "),
        "content": {"application/problem+json": {"schema": schema}},
    });
    let mut header = |name: &str, what: &str| {
        response["headers"][name] = json!({"description": what, "schema": {"type": "string"}});
    };
    if codes.contains(&Code::Unauthenticated) {
        header("www-authenticate", "Always `Bearer`.");
    }
    if codes.iter().any(|code| code.passes()) {
        header(
            "retry-after",
            "After so many seconds it may be tried again.",
        );
    }
    response
}

fn add_parameter(operation: &mut Map<String, Value>, parameter: Value) {
    let parameters = operation.entry("parameters").or_insert(json!([]));
    if let Value::Array(parameters) = parameters {
        parameters.push(parameter);
    }
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "The same key with the same body within 24 hours: the first answer again, and nothing is done twice.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    })
}

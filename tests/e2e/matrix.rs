//! Who may do what to whose: every operation of the API's own description, by everybody, to what is there,
//! to what was never issued, and to what is no id at all. An operation without its row here fails.

use std::time::Duration;

use chrono::DateTime;
use reqwest::Method;
use serde_json::{Value, json};

use super::support::api::{Answer, Api, text};
use super::support::gate::Gate;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::until::until;
use super::support::world::{Plan, World};

on_both_stores! {
    d09_d10_d16_every_operation_answers_everybody_as_the_contract_says
}

const ADMIN: (&str, &str) = (
    "HANGO_ADMIN_TOKEN",
    "the token of the only operator there is",
);

/// What was never issued.
const NOBODYS: &str = "0199a000-0000-7000-8000-00000000dead";
const NO_ID: &str = "no-id-at-all";

/// Who may do something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Who {
    /// Everybody in the tenant.
    All,
    /// Its owners and admins; a member sees it and may not.
    Admins,
    /// They, and nobody else sees it.
    OnlyAdmins,
    /// They and the member whose it is; nobody else sees it.
    Creator,
    /// Who runs the server.
    Operator,
}

/// Every operation of the API, and who may perform it.
const ROWS: &[(&str, Who)] = &[
    ("read_me", Who::All),
    ("list_users", Who::All),
    ("create_user", Who::Admins),
    ("read_user", Who::OnlyAdmins),
    ("update_user", Who::OnlyAdmins),
    ("list_api_keys", Who::All),
    ("create_api_key", Who::All),
    ("revoke_api_key", Who::Creator),
    ("list_audit_events", Who::Admins),
    ("read_usage", Who::Admins),
    ("list_tools", Who::All),
    ("list_providers", Who::All),
    ("list_agents", Who::All),
    ("create_agent", Who::Admins),
    ("read_agent", Who::All),
    ("update_agent", Who::Admins),
    ("archive_agent", Who::Admins),
    ("list_sessions", Who::All),
    ("create_session", Who::All),
    ("read_session", Who::Creator),
    ("update_session", Who::Creator),
    ("delete_session", Who::Creator),
    ("list_messages", Who::Creator),
    ("append_message", Who::Creator),
    ("list_runs_of_session", Who::Creator),
    ("create_run", Who::Creator),
    ("list_runs", Who::All),
    ("read_run", Who::Creator),
    ("list_tool_calls", Who::Creator),
    ("explain_run", Who::Creator),
    ("cancel_run", Who::Creator),
    ("create_tenant", Who::Operator),
    ("list_tenants", Who::Operator),
    ("update_tenant", Who::Operator),
];

/// An operation of the description.
struct Operation {
    id: String,
    method: Method,
    path: String,
    example: Option<Value>,
    done: u16,
}

/// Callers, each with what he comes with.
struct People {
    /// Nobody that anybody knows.
    nobody: Vec<Api>,
    /// Of another tenant: owner, admin, member.
    strangers: Vec<Api>,
    owner: Api,
    admin: Api,
    /// The one whose things they are.
    member: Api,
    another: Api,
    operator: Api,
}

fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let calls = paths.filter(|(path, _)| path.starts_with("/v1/"));
    let operations = calls.flat_map(|(path, item)| {
        let methods = item.as_object().expect("methods").iter();
        methods.map(|(method, described)| {
            let body = &described["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let schema = body.as_str().and_then(|it| it.strip_prefix('#'));
            let schema = schema.and_then(|at| document.pointer(at));
            let responses = described["responses"].as_object().expect("responses");
            let done = responses.keys().find(|status| status.starts_with('2'));
            Operation {
                id: text(&described["operationId"]),
                method: method.to_uppercase().parse().expect("a method"),
                path: path.clone(),
                example: schema.map(|schema| schema["example"].clone()),
                done: done.and_then(|it| it.parse().ok()).expect("it can be done"),
            }
        })
    });
    operations.collect()
}

async fn user(by: &Api, email: &str, role: &str) -> String {
    let body = json!({"email": email, "name": role, "role": role});
    text(&by.post("/v1/users", &body).await.expect(201)["id"])
}

async fn key_of(by: &Api, user: &str, expires_at: Option<&str>) -> String {
    let body = json!({"name": "test", "user_id": user, "expires_at": expires_at});
    text(&by.post("/v1/api-keys", &body).await.expect(201)["key"])
}

impl People {
    async fn of(world: &World) -> Self {
        let owner = &world.api;
        let operator = owner.with_key(Some(ADMIN.1));
        let tenant = json!({"name": "Other", "slug": "other",
                            "owner": {"email": "owner@example.org", "name": "Other"}});
        let made = operator
            .post("/v1/admin/tenants", &tenant)
            .await
            .expect(201);
        let stranger = owner.with_key(made["api_key"]["key"].as_str());
        let mut strangers = vec![stranger.clone()];
        for role in ["admin", "member"] {
            let id = user(&stranger, &format!("{role}@example.org"), role).await;
            strangers.push(owner.with_key(Some(&key_of(&stranger, &id, None).await)));
        }
        let member_id = user(owner, "member@example.org", "member").await;
        let another = user(owner, "another@example.org", "member").await;
        let admin = user(owner, "admin@example.org", "admin").await;
        let session = owner.post("/v1/sessions", &json!({"agent": "agent"})).await;
        let now = DateTime::parse_from_rfc3339(&text(&session.expect(201)["created_at"]));
        let soon = (now.expect("a moment") + Duration::from_secs(1)).to_rfc3339();
        let expired = key_of(owner, &member_id, Some(&soon)).await;
        let expired = owner.with_key(Some(&expired));
        until("a key has expired", async || {
            (expired.get("/v1/me").await.status == 401).then_some(())
        })
        .await;
        let unknown = format!("hk_{}_{}", "x".repeat(12), "y".repeat(43));
        Self {
            nobody: vec![
                owner.with_key(None),
                owner.with_key(Some(&unknown)),
                owner.with_key(Some("nonsense")),
                expired,
            ],
            strangers,
            admin: owner.with_key(Some(&key_of(owner, &admin, None).await)),
            member: owner.with_key(Some(&key_of(owner, &member_id, None).await)),
            another: owner.with_key(Some(&key_of(owner, &another, None).await)),
            owner: owner.clone(),
            operator,
        }
    }

    /// Something new of the kind that a path names, made by the member where a member can.
    async fn target(&self, path: &str, count: &mut u32) -> Option<String> {
        *count += 1;
        let (_, name) = path.split_once('{')?;
        let (name, _) = name.split_once('}').expect("a whole name");
        let email = format!("target{count}@example.org");
        Some(match name {
            "agent" => {
                let agent =
                    json!({"slug": format!("target-{count}"), "provider": "openai", "model": "m"});
                text(&self.owner.post("/v1/agents", &agent).await.expect(201)["id"])
            }
            "session" => self.member.open_session().await,
            "run" => {
                let session = self.member.open_session().await;
                self.member.start_run(&session, "never ends").await
            }
            "user" => user(&self.owner, &email, "member").await,
            "key" => {
                let body = json!({"name": "target"});
                let made = self.member.post("/v1/api-keys", &body).await.expect(201);
                text(&made["id"])
            }
            "tenant" => {
                let tenant = json!({"name": "T", "slug": format!("t-{count}"),
                                    "owner": {"email": email, "name": "T"}});
                let made = self.operator.post("/v1/admin/tenants", &tenant).await;
                text(&made.expect(201)["tenant"]["id"])
            }
            other => panic!("nobody knows how to make a {other}"),
        })
    }
}

/// Performs an operation on that target; what must be unique is made so.
async fn perform(
    api: &Api,
    operation: &Operation,
    target: Option<&str>,
    count: &mut u32,
) -> Answer {
    *count += 1;
    let path = match (operation.path.split_once('{'), target) {
        (Some((before, rest)), Some(target)) => {
            let (_, after) = rest.split_once('}').expect("a whole name");
            format!("{before}{target}{after}")
        }
        _ => operation.path.clone(),
    };
    let body = operation.example.clone().map(|mut body| {
        for (name, value) in [
            ("slug", format!("made-{count}")),
            ("email", format!("made{count}@example.org")),
        ] {
            if body.get(name).is_some() {
                body[name] = value.into();
            }
        }
        if operation.id == "create_session" {
            body["agent"] = "agent".into();
        }
        if body.get("provider").is_some() {
            body["provider"] = "openai".into();
        }
        body.to_string()
    });
    let sent = api.send(
        operation.method.clone(),
        &path,
        "application/json",
        body.unwrap_or_default(),
    );
    sent.await.expect("the server answers")
}

/// An answer but for the request's id.
fn told(mut answer: Answer) -> (u16, String, String) {
    if let Some(body) = answer.body.as_object_mut() {
        body.remove("request_id");
    }
    (answer.status, answer.content_type, answer.body.to_string())
}

async fn d09_d10_d16_every_operation_answers_everybody_as_the_contract_says(kind: Kind) {
    let gate = Gate::closed();
    let model = move |_: &_| Reply::text("never said").held_after(1, &gate);
    let world = Plan::on(kind, &[ADMIN]).await.start(model).await;
    let people = People::of(&world).await;
    let document = world.api.get("/openapi.json").await.expect(200);
    let operations = operations(&document);
    let mut count = 0;
    for operation in &operations {
        let row = ROWS.iter().find(|(id, _)| *id == operation.id);
        let (_, who) = row.unwrap_or_else(|| panic!("{} has no row", operation.id));
        row_holds(&people, operation, *who, &mut count).await;
    }
    for (id, _) in ROWS {
        let is_there = operations.iter().any(|operation| operation.id == *id);
        assert!(is_there, "{id} is no operation");
    }
}

async fn row_holds(people: &People, operation: &Operation, who: Who, count: &mut u32) {
    let id = &operation.id;
    let real = people.target(&operation.path, count).await;
    let targets = match &real {
        Some(real) => vec![Some(real.as_str()), Some(NOBODYS), Some(NO_ID)],
        None => vec![None],
    };
    for target in &targets {
        for nobody in &people.nobody {
            let answer = perform(nobody, operation, *target, count).await;
            assert_eq!(answer.status, 401, "{id} {target:?} {answer:#?}");
        }
    }
    let operators = who == Who::Operator;
    let tenants = [
        &people.owner,
        &people.admin,
        &people.member,
        &people.another,
    ];
    if operators {
        for caller in tenants.into_iter().chain(&people.strangers) {
            let answer = perform(caller, operation, targets[0], count).await;
            assert_eq!(answer.status, 401, "{id} {answer:#?}");
        }
    }
    if real.is_some() {
        let asked = tenants.into_iter().chain(&people.strangers);
        let asked: Vec<&Api> = if operators {
            vec![&people.operator]
        } else {
            asked.collect()
        };
        let missing = told(perform(asked[0], operation, Some(NOBODYS), count).await);
        assert_eq!(missing.0, 404, "{id} {missing:?}");
        for caller in asked {
            for target in [NOBODYS, NO_ID] {
                let answer = perform(caller, operation, Some(target), count).await;
                assert_eq!(told(answer), missing, "{id} {target}");
            }
        }
        for stranger in people.strangers.iter().filter(|_| !operators) {
            let answer = perform(stranger, operation, targets[0], count).await;
            assert_eq!(told(answer), missing, "{id}, of another tenant");
        }
        if matches!(who, Who::Creator | Who::OnlyAdmins) {
            let answer = perform(&people.another, operation, targets[0], count).await;
            assert_eq!(told(answer), missing, "{id}, of another member");
        }
    }
    if matches!(who, Who::Admins) {
        let answer = perform(&people.another, operation, targets[0], count).await;
        assert_eq!(answer.status, 403, "{id} {answer:#?}");
    }
    let may: Vec<&Api> = match who {
        Who::All => tenants.to_vec(),
        Who::Admins | Who::OnlyAdmins => vec![&people.admin, &people.owner],
        Who::Creator => vec![&people.member, &people.admin, &people.owner],
        Who::Operator => vec![&people.operator],
    };
    for caller in may {
        // What was done to one cannot be done to it again.
        let target = people.target(&operation.path, count).await;
        let answer = perform(caller, operation, target.as_deref(), count).await;
        assert_eq!(answer.status, operation.done, "{id} {answer:#?}");
    }
}

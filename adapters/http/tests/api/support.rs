//! What every test begins with: the API over an empty store, two tenants, and people with keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hango_application::live::LiveEvents;
use hango_application::signals::Signals;
use hango_application::use_cases::{
    AdminToken, ApiSettings, Catalog, Input, NewTenant, NewUser, ProviderInfo, RequestContext,
    ToolInfo, UseCases,
};
use hango_conformance::{Fixture, ManualClock};
use hango_domain::access::Role;
use hango_domain::agent::RunLimits;
use hango_domain::queue::ClaimLimits;
use hango_domain::run::Lease;
use hango_domain::tool::{Idempotency, ToolDef};
use hango_domain::{OwnerId, SpanId, TenantId, TraceId};
use hango_http::{Api, Readiness};
use hango_memory::MemoryStore;
use hango_ports::run_store::ClaimRequest;
use hango_ports::wake_up::Alone;
use hango_ports::{Ids, Stores};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use uuid::Uuid;

/// The most bytes of a body.
pub(crate) const MAX_BODY: usize = 16 * 1024;
/// The operator's token.
pub(crate) const ADMIN_TOKEN: &str = "open sesame, said the one operator";
/// The most pending runs of a session.
pub(crate) const MAX_QUEUED: u32 = 3;
/// The most running runs of a tenant.
pub(crate) const MAX_RUNNING: u32 = 2;

/// Identities in a row.
#[derive(Debug, Default)]
pub(crate) struct SequentialIds(AtomicU64);

impl SequentialIds {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl Ids for SequentialIds {
    fn uuid(&self) -> Uuid {
        const VERSION_7: u128 = 0x0199_a000_0000_7000_8000_0000_0000_0000;
        Uuid::from_u128(VERSION_7 + u128::from(self.next()))
    }

    fn secret(&self) -> [u8; 32] {
        let mut secret = [0x5a; 32];
        secret[24..].copy_from_slice(&self.next().to_be_bytes());
        secret
    }

    fn trace_id(&self) -> TraceId {
        TraceId([0xab; 16])
    }

    fn span_id(&self) -> SpanId {
        SpanId([0xcd; 8])
    }
}

/// The API over an empty store.
pub(crate) struct Server {
    pub(crate) router: Router,
    pub(crate) use_cases: Arc<UseCases>,
    pub(crate) stores: Stores,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) live: Arc<LiveEvents>,
    pub(crate) readiness: Arc<Readiness>,
    /// Writes as a worker would make them.
    pub(crate) worker: Fixture,
    /// The tenant of `owner` and `member`.
    pub(crate) tenant: TenantId,
    /// The key of an owner.
    pub(crate) owner: String,
    /// The key of a member of the same tenant.
    pub(crate) member: String,
    /// The key of an owner of another tenant.
    pub(crate) stranger: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

/// A request on its way.
pub(crate) struct Call {
    router: Router,
    request: http::request::Builder,
    body: Body,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::over(|stores| stores).await
    }

    /// With other stores in the place of some.
    pub(crate) async fn over(with: impl FnOnce(Stores) -> Stores) -> Self {
        Self::of(with, |use_cases| use_cases).await
    }

    /// Observed by somebody.
    pub(crate) async fn observed(by: impl FnOnce(UseCases) -> UseCases) -> Self {
        Self::of(|stores| stores, by).await
    }

    async fn of(
        with: impl FnOnce(Stores) -> Stores,
        observed: impl FnOnce(UseCases) -> UseCases,
    ) -> Self {
        let clock = Arc::new(ManualClock::default());
        let stores = with(Arc::new(MemoryStore::new(clock.clone())).stores());
        let live = Arc::new(LiveEvents::default());
        let use_cases = UseCases::new(
            stores.clone(),
            Arc::new(SequentialIds::default()),
            clock.clone(),
            Arc::new(Signals::new(Arc::new(Alone))),
            live.clone(),
            catalog(),
            ApiSettings {
                max_queued_runs_per_session: MAX_QUEUED,
                running_per_tenant: MAX_RUNNING,
                limits: RunLimits {
                    max_iterations: 20,
                    tool_timeout: Duration::from_secs(30),
                    deadline: Duration::from_mins(30),
                },
                repeat_call_threshold: 3,
            },
        );
        let use_cases = Arc::new(observed(use_cases));
        let readiness = Arc::new(Readiness::new(stores.health.clone()));
        readiness.start();
        let router = hango_http::router(Api {
            use_cases: use_cases.clone(),
            readiness: readiness.clone(),
            rates: Arc::default(),
            max_body_bytes: MAX_BODY,
            admin_token: Some(AdminToken::parse(ADMIN_TOKEN).unwrap()),
            metrics: None,
        });
        let (tenant, owner) = make_tenant(&use_cases, "acme").await;
        let (_, stranger) = make_tenant(&use_cases, "umbrella").await;
        let member = make_key(&use_cases, tenant, "member@example.org", Role::Member).await;
        Self {
            router,
            use_cases,
            worker: Fixture::new(stores.clone(), clock.clone()),
            stores,
            clock,
            live,
            readiness,
            tenant,
            owner,
            member,
            stranger,
        }
    }

    /// The same stores, behind other routes of a process that has not started yet.
    pub(crate) fn starting(self, routes: impl FnOnce(Api) -> Router) -> Self {
        let readiness = Arc::new(Readiness::new(self.stores.health.clone()));
        let router = routes(Api {
            use_cases: self.use_cases.clone(),
            readiness: readiness.clone(),
            rates: Arc::default(),
            max_body_bytes: MAX_BODY,
            admin_token: Some(AdminToken::parse(ADMIN_TOKEN).unwrap()),
            metrics: None,
        });
        Self {
            router,
            readiness,
            ..self
        }
    }

    /// Another user's key.
    pub(crate) async fn another(&self, email: &str, role: Role) -> String {
        make_key(&self.use_cases, self.tenant, email, role).await
    }

    /// The user of a key.
    pub(crate) async fn user_of(&self, key: &str) -> Value {
        let me = self.get(key, "/v1/me").await;
        assert_eq!(me.status, StatusCode::OK, "{me:?}");
        me.body["user"].clone()
    }

    /// The path of the user of a key.
    pub(crate) async fn path_of(&self, key: &str) -> String {
        let user = self.user_of(key).await;
        format!("/v1/users/{}", user["id"].as_str().unwrap())
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        Call {
            router: self.router.clone(),
            request: Request::builder().method(method).uri(path),
            body: Body::empty(),
        }
    }

    pub(crate) async fn get(&self, key: &str, path: &str) -> Answer {
        self.call(Method::GET, path).key(key).send().await
    }

    pub(crate) async fn post(&self, key: &str, path: &str, body: Value) -> Answer {
        let call = self.call(Method::POST, path);
        call.key(key).json(&body).send().await
    }

    pub(crate) async fn patch(&self, key: &str, path: &str, body: Value) -> Answer {
        let call = self.call(Method::PATCH, path);
        call.key(key).json(&body).send().await
    }

    pub(crate) async fn delete(&self, key: &str, path: &str) -> Answer {
        self.call(Method::DELETE, path).key(key).send().await
    }

    /// Makes an agent of that slug.
    pub(crate) async fn agent(&self, key: &str, slug: &str) -> Value {
        let body = json!({"slug": slug, "provider": "demo", "model": "demo-1"});
        let made = self.post(key, "/v1/agents", body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
        made.body
    }

    /// Makes a session with the agent of that slug and returns its path.
    pub(crate) async fn session(&self, key: &str, slug: &str) -> String {
        let made = self.post(key, "/v1/sessions", json!({"agent": slug})).await;
        assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
        format!("/v1/sessions/{}", made.id())
    }

    /// An owner's session with a new agent; its path.
    pub(crate) async fn owners_session(&self) -> String {
        self.agent(&self.owner, "helper").await;
        self.session(&self.owner, "helper").await
    }

    /// Posts a run and returns its path.
    pub(crate) async fn run(&self, key: &str, session: &str) -> String {
        let runs = format!("{session}/runs");
        let made = self.post(key, &runs, json!({"input": "hello"})).await;
        assert_eq!(made.status, StatusCode::ACCEPTED, "{made:?}");
        format!("/v1/runs/{}", made.id())
    }

    /// Claims the next run, as a worker does.
    pub(crate) async fn claim(&self) -> Lease {
        let request = ClaimRequest {
            owner: OwnerId(Uuid::from_u128(7)),
            ttl: Duration::from_secs(90),
            only: None,
            limits: ClaimLimits {
                runs: 1,
                running_per_tenant: 0,
                memory_version: 1,
            },
        };
        let claimed = self.stores.runs.claim(request).await.unwrap();
        claimed.won.first().unwrap().lease
    }
}

impl Call {
    pub(crate) fn key(self, key: &str) -> Self {
        self.header(header::AUTHORIZATION.as_str(), &format!("Bearer {key}"))
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(crate) fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) async fn send(self) -> Answer {
        let request = self.request.body(self.body).unwrap();
        let response = self.router.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_str(&text).unwrap_or_default(),
            text,
        }
    }
}

impl Answer {
    pub(crate) fn id(&self) -> String {
        self.body["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Checks that this is a problem of that status and code, in the contract's form.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.body["code"], code, "{self:?}");
        assert_eq!(self.body["status"], status);
        assert_eq!(self.body["type"], format!("urn:hango:problem:{code}"));
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.body["request_id"], self.header("x-request-id"));
        assert!(self.body["title"].is_string() && self.body["detail"].is_string());
    }

    /// The entries of a validation problem as `(pointer, code)`, sorted.
    #[track_caller]
    pub(crate) fn entries(&self) -> Vec<(String, String)> {
        self.is_problem(422, "validation");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let entries = self.body["errors"].as_array().unwrap().iter();
        let mut entries: Vec<_> = entries
            .map(|entry| (text(&entry["pointer"]), text(&entry["code"])))
            .collect();
        entries.sort();
        entries
    }

    /// Checks which fields are at fault.
    #[track_caller]
    pub(crate) fn is_invalid(&self, expected: &[(&str, &str)]) {
        let found = self.entries();
        let found: Vec<_> = found.iter().map(|(at, code)| (&**at, &**code)).collect();
        assert_eq!(found, expected);
    }
}

fn catalog() -> Catalog {
    let tool = |name: &str| ToolInfo {
        definition: ToolDef {
            name: name.to_owned(),
            description: "a tool".to_owned(),
            parameters: json!({"type": "object"}),
        },
        idempotency: Idempotency::Safe,
    };
    Catalog {
        providers: vec![ProviderInfo {
            name: "demo".to_owned(),
            kind: "scripted".to_owned(),
        }],
        tools: vec![tool("get_time"), tool("write_todos")],
    }
}

async fn make_tenant(use_cases: &UseCases, slug: &str) -> (TenantId, String) {
    let new = NewTenant {
        slug: slug.to_owned(),
        name: None,
        owner_email: "owner@example.org".to_owned(),
        owner_name: None,
    };
    let request = RequestContext::default();
    let made = use_cases.create_tenant(&request, Input::new(new)).await;
    let (made, key) = made.unwrap();
    (made.tenant.id, key.expose().to_owned())
}

async fn make_key(use_cases: &UseCases, tenant: TenantId, email: &str, role: Role) -> String {
    let new = NewUser {
        email: email.to_owned(),
        name: None,
        role,
    };
    let user = use_cases
        .create_user(tenant, Input::new(new))
        .await
        .unwrap();
    let (_, key) = use_cases.create_key(&user, "test", None).await.unwrap();
    key.expose().to_owned()
}

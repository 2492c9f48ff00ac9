//! The points around every call of every store.
//!
//! A point is named after the port and its call: `store.claim.before`, `sessions.append.after`. Beside
//! them `store.before` and `store.after` are passed at every call of the run store, whichever it is, so
//! that its N-th call has a name; the other stores have such points too.

use std::sync::Arc;

use async_trait::async_trait;
use hango_domain::access::{Scope, Visibility};
use hango_domain::agent::Agent;
use hango_domain::conversation::{Message, NewMessage};
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User};
use hango_domain::run::{
    Answer, Boundary, End, GiveBack, Lease, Record, Repair, Resume, Retry, Run,
};
use hango_domain::session::Session;
use hango_domain::usage::UsageSum;
use hango_domain::{AgentId, ApiKeyId, OwnerId, RunId, SessionId, TenantId, UserId};
use hango_ports::agent_store::{AgentPatch, AgentRef, AgentStoreError};
use hango_ports::audit_store::{AuditFilter, AuditRow, NewAudit};
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::identity_store::{Credential, IdentityStoreError, UserPatch};
use hango_ports::page::{Page, PageRequest};
use hango_ports::run_store::{
    Accepted, Cancelled, Census, ClaimRequest, Claims, Held, NewRun, PruneRequest, Pruned,
    ReclaimRequest, Reclaimed, Renewal, RunFilter, RunStoreError, Situation, Story, Written,
};
use hango_ports::session_store::{
    MessageQuery, NewSession, SessionFilter, SessionPatch, SessionStoreError,
};
use hango_ports::store::StoreHealth;
use hango_ports::usage_store::UsageQuery;
use hango_ports::{
    AgentStore, AuditStore, IdentityStore, RunStore, SessionStore, StoreFailure, Stores, UsageStore,
};

use super::{Failpoints, Reached};

/// A store with its points.
pub(super) struct Armed<S: ?Sized> {
    store: Arc<S>,
    points: Failpoints,
}

impl<S: ?Sized> Armed<S> {
    pub(super) fn new(store: Arc<S>, points: &Failpoints) -> Arc<Self> {
        let points = points.clone();
        Arc::new(Self { store, points })
    }

    /// Makes a call between its points. Where the one behind it lets it fail, it was made all the same.
    async fn around<T, E: From<StoreFailure>>(
        &self,
        before: [&'static str; 2],
        call: impl Future<Output = Result<T, E>> + Send,
        after: [&'static str; 2],
    ) -> Result<T, E> {
        self.points.pass(before, "").await.map_err(unavailable)?;
        let answer = call.await;
        self.points.pass(after, "").await.map_err(unavailable)?;
        answer
    }
}

fn unavailable(reached: Reached) -> StoreFailure {
    StoreFailure::Unavailable(reached.into())
}

/// The stores, all with points.
pub(super) fn armed(stores: Stores, points: &Failpoints) -> Stores {
    Stores {
        runs: Armed::new(stores.runs, points),
        sessions: Armed::new(stores.sessions, points),
        agents: Armed::new(stores.agents, points),
        identities: Armed::new(stores.identities, points),
        audit: Armed::new(stores.audit, points),
        usage: Armed::new(stores.usage, points),
        health: Armed::new(stores.health, points),
    }
}

/// The names of the points of all stores.
pub(super) const POINTS: [&[&str]; 7] = [RUNS, SESSIONS, AGENTS, IDENTITIES, AUDIT, USAGE, HEALTH];

/// Implements a port for a store with points, out of the port's calls, and lists their points.
macro_rules! arm {
    ($points:ident = $name:literal: $port:ident, $error:ty {
        $($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*
    }) => {
        const $points: &[&str] = &[
            concat!($name, ".before"),
            concat!($name, ".after"),
            $(
                concat!($name, ".", stringify!($call), ".before"),
                concat!($name, ".", stringify!($call), ".after"),
            )*
        ];

        #[async_trait]
        impl $port for Armed<dyn $port> {
            $(async fn $call(&self, $($argument: $type),*) -> Result<$answer, $error> {
                self.around(
                    [concat!($name, ".before"), concat!($name, ".", stringify!($call), ".before")],
                    self.store.$call($($argument),*),
                    [concat!($name, ".", stringify!($call), ".after"), concat!($name, ".after")],
                )
                .await
            })*
        }
    };
}

arm! { RUNS = "store": RunStore, RunStoreError {
    accept(new: NewRun, audit: NewAudit, once: Option<IdempotencyKey>) -> Accepted;
    find(seen: Visibility, run: RunId) -> Option<Run>;
    list(seen: Visibility, filter: RunFilter, page: PageRequest) -> Page<Run>;
    tool_calls(seen: Visibility, run: RunId) -> Option<Vec<ToolCall>>;
    events(seen: Visibility, run: RunId, after: u64, limit: u32) -> Option<Vec<Event>>;
    story(run: RunId) -> Option<Story>;
    situation(seen: Visibility, run: RunId) -> Option<Situation>;
    census(most_tenants: u32) -> Census;
    claim(request: ClaimRequest) -> Claims;
    renew(owner: OwnerId, held: Vec<Held>, ttl: std::time::Duration) -> Renewal;
    cancels(owner: OwnerId) -> Vec<Lease>;
    repair(change: Repair) -> Written;
    answer(change: Answer) -> Written;
    resume(change: Resume) -> Written;
    record(change: Record) -> Written;
    complete_turn(change: Boundary) -> Written;
    retry(change: Retry) -> Written;
    give_back(change: GiveBack) -> Written;
    finish(change: End) -> Written;
    request_cancel(seen: Visibility, run: RunId, audit: NewAudit) -> Cancelled;
    reclaim(request: ReclaimRequest) -> Vec<Reclaimed>;
    prune(request: PruneRequest) -> Pruned;
}}

arm! { SESSIONS = "sessions": SessionStore, SessionStoreError {
    create(new: NewSession, audit: NewAudit, once: Option<IdempotencyKey>) -> Session;
    find(seen: Visibility, session: SessionId) -> Option<Session>;
    list(seen: Visibility, filter: SessionFilter, page: PageRequest) -> Page<Session>;
    update(seen: Visibility, session: SessionId, patch: SessionPatch, audit: NewAudit) -> Session;
    delete(seen: Visibility, session: SessionId, audit: NewAudit) -> ();
    messages(seen: Visibility, session: SessionId, query: MessageQuery) -> Option<Vec<Message>>;
    append(seen: Visibility, session: SessionId, message: NewMessage, audit: NewAudit,
        once: Option<IdempotencyKey>) -> Message;
}}

arm! { AGENTS = "agents": AgentStore, AgentStoreError {
    create(agent: Agent, audit: NewAudit) -> Agent;
    find(tenant: TenantId, agent: AgentRef) -> Option<Agent>;
    list(tenant: TenantId, include_archived: bool, page: PageRequest) -> Page<Agent>;
    update(tenant: TenantId, agent: AgentId, version: Option<u32>, patch: AgentPatch, audit: NewAudit)
        -> Agent;
    archive(tenant: TenantId, agent: AgentId, audit: NewAudit) -> ();
}}

arm! { IDENTITIES = "identities": IdentityStore, IdentityStoreError {
    credential(prefix: &str) -> Option<Credential>;
    touch(key: ApiKeyId) -> ();
    create_tenant(tenant: Tenant, owner: User, key: ApiKey, audit: NewAudit) -> Credential;
    tenant(tenant: TenantId) -> Option<Tenant>;
    tenant_by_slug(slug: &str) -> Option<Tenant>;
    tenants(page: PageRequest) -> Page<Tenant>;
    set_tenant_status(tenant: TenantId, status: TenantStatus, audit: NewAudit) -> Tenant;
    create_user(user: User, audit: NewAudit) -> User;
    user(tenant: TenantId, user: UserId) -> Option<User>;
    user_by_email(tenant: TenantId, email: &str) -> Option<User>;
    users(tenant: TenantId, only: Option<UserId>, page: PageRequest) -> Page<User>;
    update_user(by: Option<Scope>, tenant: TenantId, user: UserId, patch: UserPatch, audit: NewAudit)
        -> User;
    create_key(by: Option<Scope>, key: ApiKey, audit: NewAudit) -> ApiKey;
    key(tenant: TenantId, key: ApiKeyId) -> Option<ApiKey>;
    key_of_any_tenant(key: ApiKeyId) -> Option<ApiKey>;
    keys(tenant: TenantId, user: Option<UserId>, page: PageRequest) -> Page<ApiKey>;
    revoke_key(tenant: TenantId, key: ApiKeyId, audit: NewAudit) -> ();
}}

arm! { USAGE = "usage": UsageStore, StoreFailure {
    sum(tenant: TenantId, query: UsageQuery) -> Vec<UsageSum>;
}}

arm! { AUDIT = "audit": AuditStore, StoreFailure {
    record(row: NewAudit) -> ();
    list(tenant: TenantId, filter: AuditFilter, page: PageRequest) -> Page<AuditRow>;
}}

arm! { HEALTH = "health": StoreHealth, StoreFailure {
    check() -> ();
}}

//! What every check begins with: an empty store, its clock, and people who work in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hango_domain::access::{Role, Scope, Visibility, visibility};
use hango_domain::agent::{Agent, AgentLimits, AgentSettings};
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User, UserStatus};
use hango_domain::session::Session;
use hango_domain::{AgentId, ApiKeyId, AuditId, SessionId, TenantId, Timestamp, UserId};
use hango_ports::agent_store::AgentRef;
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::identity_store::UserPatch;
use hango_ports::session_store::NewSession;
use hango_ports::{Clock as _, Stores};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::ManualClock;

/// An empty store and the clock that it was built with.
pub struct Fixture {
    /// The store under test.
    pub stores: Stores,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    ids: AtomicU64,
}

/// A tenant at work: its first owner made an agent, and has a session with it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The tenant.
    pub tenant: TenantId,
    /// Its first owner.
    pub owner: Scope,
    /// The agent.
    pub agent: Agent,
    /// The session.
    pub session: Session,
}

impl Place {
    /// What the owner sees: all of his tenant.
    #[must_use]
    pub const fn seen(&self) -> Visibility {
        visibility(&self.owner)
    }
}

impl Fixture {
    /// The beginning of a check.
    #[must_use]
    pub const fn new(stores: Stores, clock: Arc<ManualClock>) -> Self {
        Self {
            stores,
            clock,
            ids: AtomicU64::new(1),
        }
    }

    /// A new identity, greater than every one before.
    pub fn uuid(&self) -> Uuid {
        const VERSION_7: u128 = 0x0199_c000_0000_7000_8000_0000_0000_0000;
        Uuid::from_u128(VERSION_7 + u128::from(self.ids.fetch_add(1, Ordering::SeqCst)))
    }

    /// A text that was never used: a slug, an address, a prefix of 12 characters.
    pub fn name(&self) -> String {
        format!("n{:011}", self.ids.fetch_add(1, Ordering::SeqCst))
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// An audit row of what `scope` did to `target`.
    pub fn audit(&self, scope: &Scope, action: &'static str, target: Uuid) -> NewAudit {
        NewAudit {
            id: AuditId(self.uuid()),
            tenant_id: scope.tenant,
            actor_id: Some(scope.user),
            actor_role: Some(scope.role),
            api_key_id: scope.key,
            action,
            target_kind: action.split('.').next().unwrap_or_default(),
            target_id: Some(target),
            detail: Map::from_iter([("lane".to_owned(), json!("main"))]),
            trace_id: None,
            request_id: Some(self.name()),
            status: 200,
        }
    }

    /// An audit row of what an operator did to a tenant.
    pub fn operator_audit(&self, tenant: TenantId, action: &'static str) -> NewAudit {
        NewAudit {
            id: AuditId(self.uuid()),
            tenant_id: tenant,
            actor_id: None,
            actor_role: None,
            api_key_id: None,
            action,
            target_kind: "tenant",
            target_id: Some(tenant.0),
            detail: Map::new(),
            trace_id: None,
            request_id: None,
            status: 200,
        }
    }

    /// A tenant that was not added yet.
    pub fn new_tenant(&self) -> Tenant {
        Tenant {
            id: TenantId(self.uuid()),
            slug: self.name(),
            name: "Tenant & Söhne".to_owned(),
            status: TenantStatus::Active,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
        }
    }

    /// A user that was not added yet.
    pub fn new_user(&self, tenant: TenantId, role: Role) -> User {
        User {
            id: UserId(self.uuid()),
            tenant_id: tenant,
            email: format!("{}@example.org", self.name()),
            name: "Somebody".to_owned(),
            role,
            status: UserStatus::Active,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
        }
    }

    /// A key that was not added yet.
    pub fn new_key(&self, user: &User) -> ApiKey {
        ApiKey {
            id: ApiKeyId(self.uuid()),
            tenant_id: user.tenant_id,
            user_id: user.id,
            name: "laptop".to_owned(),
            prefix: self.name(),
            secret_hash: [0xa5; 32],
            created_at: Timestamp::from_micros(0),
            expires_at: Some(Timestamp::from_micros(4_000_000_000_000_001)),
            revoked_at: None,
            last_used_at: None,
        }
    }

    /// An agent that was not added yet.
    pub fn new_agent(&self, scope: &Scope) -> Agent {
        Agent {
            id: AgentId(self.uuid()),
            tenant_id: scope.tenant,
            version: 1,
            slug: self.name(),
            name: "Helper".to_owned(),
            description: "helps".to_owned(),
            settings: AgentSettings {
                provider: "scripted".to_owned(),
                model: "model-1".to_owned(),
                system_prompt: "Be brief.".to_owned(),
                tools: vec!["get_time".to_owned()],
                max_tokens: Some(1000),
                temperature: Some(0.5),
                limits: AgentLimits {
                    max_iterations: Some(7),
                    tool_timeout_ms: None,
                    run_deadline_ms: Some(60_000),
                },
                middleware: Map::from_iter([("todo".to_owned(), json!({"enabled": true}))]),
            },
            metadata: Map::from_iter([("team".to_owned(), json!("blue"))]),
            created_by: scope.user,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
            archived_at: None,
        }
    }

    /// A session with `agent` that was not made yet.
    pub fn new_session(&self, scope: &Scope, agent: AgentId) -> NewSession {
        NewSession {
            id: SessionId(self.uuid()),
            created_by: *scope,
            agent: AgentRef::Id(agent),
            title: "About time".to_owned(),
            metadata: Map::from_iter([("ticket".to_owned(), json!(17))]),
        }
    }

    /// Adds a tenant; the scope is that of its first owner.
    pub async fn tenant(&self) -> Scope {
        let tenant = self.new_tenant();
        let owner = self.new_user(tenant.id, Role::Owner);
        let key = self.new_key(&owner);
        let scope = Scope {
            tenant: tenant.id,
            user: owner.id,
            role: owner.role,
            key: Some(key.id),
        };
        let audit = self.operator_audit(tenant.id, "tenant.create");
        let identities = &self.stores.identities;
        identities
            .create_tenant(tenant, owner, key, audit)
            .await
            .expect("a new tenant is added");
        scope
    }

    /// Adds a user to the tenant of `by`.
    pub async fn user(&self, by: &Scope, role: Role) -> Scope {
        let user = self.new_user(by.tenant, role);
        let audit = self.audit(by, "user.create", user.id.0);
        let user = self.stores.identities.create_user(user, audit).await;
        let user = user.expect("a new user is added");
        Scope {
            tenant: user.tenant_id,
            user: user.id,
            role: user.role,
            key: None,
        }
    }

    /// Adds a key of a user, by an operator; the scope is his with that key.
    pub async fn keyed(&self, scope: &Scope, expires_at: Option<Timestamp>) -> Scope {
        let user = User {
            id: scope.user,
            ..self.new_user(scope.tenant, scope.role)
        };
        let key = ApiKey {
            expires_at,
            ..self.new_key(&user)
        };
        let audit = self.operator_audit(scope.tenant, "key.create");
        let key = self.stores.identities.create_key(None, key, audit).await;
        Scope {
            key: Some(key.expect("the user is there").id),
            ..*scope
        }
    }

    /// Revokes the key that somebody comes with.
    pub async fn revoke(&self, by: &Scope, whose: &Scope) {
        let key = whose.key.expect("he has one");
        let audit = self.audit(by, "key.revoke", key.0);
        let revoked = self
            .stores
            .identities
            .revoke_key(by.tenant, key, audit)
            .await;
        revoked.expect("it is there");
    }

    /// An idempotency key of that caller.
    #[must_use]
    pub fn once(&self, scope: &Scope, key: &str) -> IdempotencyKey {
        IdempotencyKey {
            tenant: scope.tenant,
            user: scope.user,
            call: "POST /test".to_owned(),
            key: key.to_owned(),
            body: [7; 32],
        }
    }

    /// Adds an agent.
    pub async fn agent(&self, scope: &Scope) -> Agent {
        let agent = self.new_agent(scope);
        let audit = self.audit(scope, "agent.create", agent.id.0);
        let agent = self.stores.agents.create(agent, audit).await;
        agent.expect("a new agent is added")
    }

    /// Makes a session of that user.
    pub async fn session(&self, scope: &Scope, agent: AgentId) -> Session {
        let new = self.new_session(scope, agent);
        let audit = self.audit(scope, "session.create", new.id.0);
        let session = self.stores.sessions.create(new, audit, None).await;
        session.expect("a new session is made")
    }

    /// A new tenant at work.
    pub async fn place(&self) -> Place {
        let owner = self.tenant().await;
        let agent = self.agent(&owner).await;
        let session = self.session(&owner, agent.id).await;
        Place {
            tenant: owner.tenant,
            owner,
            agent,
            session,
        }
    }

    /// Suspends a tenant or lets it work again.
    pub async fn set_tenant(&self, by: &Scope, status: TenantStatus) {
        let audit = self.operator_audit(by.tenant, "tenant.update");
        let identities = &self.stores.identities;
        let set = identities.set_tenant_status(by.tenant, status, audit).await;
        set.expect("the tenant is there");
    }

    /// Changes a user.
    pub async fn change_user(&self, by: &Scope, user: UserId, patch: UserPatch) {
        let audit = self.audit(by, "user.update", user.0);
        let identities = &self.stores.identities;
        let changed = identities
            .update_user(None, by.tenant, user, patch, audit)
            .await;
        changed.expect("the user is there");
    }
}

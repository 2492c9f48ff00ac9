//! Two tenants, each with an owner, a member, an agent and a few sessions.

use std::sync::Arc;

use hango_application::use_cases::{Caller, RequestContext};
use hango_domain::access::Role;
use hango_domain::agent::{Agent, AgentLimits, AgentSettings};
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User, UserStatus};
use hango_domain::{AgentId, ApiKeyId, AuditId, SessionId, TenantId, Timestamp, UserId};
use hango_ports::Ids;
use hango_ports::agent_store::AgentRef;
use hango_ports::audit_store::NewAudit;
use hango_ports::identity_store::{Credential, UserPatch};
use hango_ports::session_store::NewSession;
use serde_json::{Map, json};
use uuid::Uuid;

use crate::dice::Dice;
use crate::ids::SeededIds;
use crate::log::What;
use crate::world::World;

/// The name of the one provider.
pub(crate) const PROVIDER: &str = "simulated";

/// A model that takes its time, and never has any trouble.
pub(crate) const STEADY_MODEL: &str = "steady";

/// See the module.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) tenant: TenantId,
    pub(crate) owner: Caller,
    pub(crate) member: Caller,
    pub(crate) sessions: Vec<Session>,
}

/// A session and whose it is.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) by: Caller,
}

/// Makes people, agents and sessions, past everything that may go wrong.
pub(crate) struct Founder {
    world: Arc<World>,
    ids: SeededIds,
}

impl Founder {
    pub(crate) fn new(world: &Arc<World>) -> Self {
        Self {
            world: Arc::clone(world),
            ids: SeededIds::new(Dice::new(world.seed, 3)),
        }
    }

    /// A tenant at work.
    pub(crate) async fn place(&self, name: &str) -> Place {
        let identities = &self.world.stores.identities;
        let tenant = Tenant {
            id: TenantId(self.ids.uuid()),
            slug: name.to_owned(),
            name: name.to_owned(),
            status: TenantStatus::Active,
            created_at: LONG_AGO,
            updated_at: LONG_AGO,
        };
        let owner = self.user(tenant.id, Role::Owner);
        let key = self.key(&owner);
        let audit = self.audit(tenant.id);
        let owner = identities.create_tenant(tenant, owner, key, audit).await;
        let owner = owner.expect("a new tenant is added");
        let tenant = owner.tenant.clone();
        let member = self.user(tenant.id, Role::Member);
        let member = identities.create_user(member, self.audit(tenant.id)).await;
        let member = member.expect("a new user is added");
        let member = Credential {
            key: self.key(&member),
            user: member,
            tenant: tenant.clone(),
        };
        let mut place = Place {
            tenant: tenant.id,
            owner: Caller::new(owner, RequestContext::default()),
            member: Caller::new(member, RequestContext::default()),
            sessions: Vec::new(),
        };
        let agent = self.agent(&place, "whimsical").await;
        for n in 0..self.world.plan.sessions {
            let by = if n % 2 == 0 {
                &place.owner
            } else {
                &place.member
            };
            let session = self.session(by, agent).await;
            place.sessions.push(session);
        }
        place
    }

    /// So many more sessions, with an agent on the steady model.
    pub(crate) async fn steady_sessions(&self, place: &Place, count: usize) -> Vec<Session> {
        let agent = self.agent(place, STEADY_MODEL).await;
        let mut sessions = Vec::new();
        for _ in 0..count {
            sessions.push(self.session(&place.owner, agent).await);
        }
        sessions
    }

    async fn agent(&self, place: &Place, model: &str) -> AgentId {
        let dice = &self.world.dice;
        let mut middleware = Map::new();
        for layer in ["todo", "repeat_call"] {
            if dice.percent(70) {
                middleware.insert(layer.to_owned(), json!({"enabled": false}));
            }
        }
        let agent = Agent {
            id: AgentId(self.ids.uuid()),
            tenant_id: place.tenant,
            version: 1,
            slug: model.to_owned(),
            name: "Helper".to_owned(),
            description: String::new(),
            settings: AgentSettings {
                provider: PROVIDER.to_owned(),
                model: model.to_owned(),
                system_prompt: String::new(),
                tools: Vec::new(),
                max_tokens: None,
                temperature: None,
                limits: AgentLimits::default(),
                middleware,
            },
            metadata: Map::new(),
            created_by: place.owner.scope.user,
            created_at: LONG_AGO,
            updated_at: LONG_AGO,
            archived_at: None,
        };
        let agents = &self.world.stores.agents;
        let agent = agents.create(agent, self.audit(place.tenant)).await;
        agent.expect("a new agent is added").id
    }

    async fn session(&self, by: &Caller, agent: AgentId) -> Session {
        let new = NewSession {
            id: SessionId(self.ids.uuid()),
            created_by: by.scope,
            agent: AgentRef::Id(agent),
            title: String::new(),
            metadata: Map::new(),
        };
        let id = new.id;
        let sessions = &self.world.stores.sessions;
        let made = sessions
            .create(new, self.audit(by.scope.tenant), None)
            .await;
        made.expect("a new session is made");
        Session { id, by: by.clone() }
    }

    /// Suspends a tenant, or lets it work again.
    pub(crate) async fn let_work(&self, place: &Place, active: bool) {
        let status = if active {
            TenantStatus::Active
        } else {
            TenantStatus::Suspended
        };
        let audit = self.audit(place.tenant);
        let identities = &self.world.stores.identities;
        let set = identities
            .set_tenant_status(place.tenant, status, audit)
            .await;
        set.expect("the tenant is there");
        self.world.note(What::Tenant(place.tenant, active));
    }

    /// Disables the tenant's member.
    pub(crate) async fn disable_member(&self, place: &Place) {
        let patch = UserPatch {
            status: Some(UserStatus::Disabled),
            ..UserPatch::default()
        };
        let user = place.member.scope.user;
        let audit = self.audit(place.tenant);
        let identities = &self.world.stores.identities;
        let changed = identities
            .update_user(None, place.tenant, user, patch, audit)
            .await;
        changed.expect("the user is there");
    }

    fn user(&self, tenant: TenantId, role: Role) -> User {
        let id = UserId(self.ids.uuid());
        User {
            id,
            tenant_id: tenant,
            email: format!("{id}@example.org"),
            name: "Somebody".to_owned(),
            role,
            status: UserStatus::Active,
            created_at: LONG_AGO,
            updated_at: LONG_AGO,
        }
    }

    fn key(&self, user: &User) -> ApiKey {
        let id = ApiKeyId(self.ids.uuid());
        ApiKey {
            id,
            tenant_id: user.tenant_id,
            user_id: user.id,
            name: "key".to_owned(),
            prefix: id.to_string(),
            secret_hash: [0; 32],
            created_at: LONG_AGO,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        }
    }

    fn audit(&self, tenant: TenantId) -> NewAudit {
        NewAudit {
            id: AuditId(self.ids.uuid()),
            tenant_id: tenant,
            actor_id: None,
            actor_role: None,
            api_key_id: None,
            action: "world.change",
            target_kind: "world",
            target_id: None::<Uuid>,
            detail: Map::new(),
            trace_id: None,
            request_id: None,
            status: 200,
        }
    }
}

const LONG_AGO: Timestamp = Timestamp::from_micros(0);

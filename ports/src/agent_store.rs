//! Where agents are kept.

use async_trait::async_trait;
use hango_domain::agent::{Agent, AgentSettings};
use hango_domain::{AgentId, TenantId, Timestamp};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::audit_store::NewAudit;
use crate::page::{Page, PageRequest};
use crate::store::StoreFailure;

/// How an agent is named by a caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AgentRef {
    /// By its id.
    Id(AgentId),
    /// By its slug.
    Slug(String),
}

impl AgentRef {
    /// The reference that `text` is: an id when it has the form of one, which no slug has.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::Slug(text.to_owned()), Self::Id)
    }
}

/// A change of an agent: what is `Some` is replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentPatch {
    /// Its name for people.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// How it behaves, whole.
    pub settings: Option<AgentSettings>,
    /// The callers' own data, whole.
    pub metadata: Option<Map<String, Value>>,
}

impl AgentPatch {
    /// The agent after this change, were it made at `now`: one version higher. `None` if it is like that
    /// already.
    #[must_use]
    pub fn applied_to(self, agent: &Agent, now: Timestamp) -> Option<Agent> {
        let was = agent.clone();
        let same_version = Agent {
            name: self.name.unwrap_or(was.name),
            description: self.description.unwrap_or(was.description),
            settings: self.settings.unwrap_or(was.settings),
            metadata: self.metadata.unwrap_or(was.metadata),
            ..was
        };
        (same_version != *agent).then(|| Agent {
            version: agent.version + 1,
            updated_at: now,
            ..same_version
        })
    }
}

/// Keeps agents. Reads of one tenant never see another's.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait AgentStore: Send + Sync {
    /// Adds an agent; its moments are set by the store's clock, its version is 1.
    async fn create(&self, agent: Agent, audit: NewAudit) -> Result<Agent, AgentStoreError>;

    /// Reads an agent, archived ones too; `None` when the tenant has no such one.
    async fn find(
        &self,
        tenant: TenantId,
        agent: AgentRef,
    ) -> Result<Option<Agent>, AgentStoreError>;

    /// Reads a tenant's agents, newest first.
    async fn list(
        &self,
        tenant: TenantId,
        include_archived: bool,
        page: PageRequest,
    ) -> Result<Page<Agent>, AgentStoreError>;

    /// Changes an agent and makes its version one higher; with `version`, only from that one. What changes
    /// nothing is no change: the agent stays as it is, its version and moments too, and no row is noted.
    async fn update(
        &self,
        tenant: TenantId,
        agent: AgentId,
        version: Option<u32>,
        patch: AgentPatch,
        audit: NewAudit,
    ) -> Result<Agent, AgentStoreError>;

    /// Archives an agent; doing it again changes nothing.
    async fn archive(
        &self,
        tenant: TenantId,
        agent: AgentId,
        audit: NewAudit,
    ) -> Result<(), AgentStoreError>;
}

/// Why an [`AgentStore`] did not do what it was asked.
#[derive(Debug, Error)]
pub enum AgentStoreError {
    /// The tenant has no such agent.
    #[error("no such agent")]
    NotFound,
    /// The tenant has an agent of that slug, perhaps an archived one.
    #[error("the slug is taken")]
    SlugTaken,
    /// The agent has another version than the caller thought.
    #[error("the agent has version {found}")]
    VersionMismatch {
        /// The version it has.
        found: u32,
    },
    /// The store could not do its work.
    #[error(transparent)]
    Failure(#[from] StoreFailure),
}

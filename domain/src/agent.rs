//! Agents: what an operator configures, and what a run keeps of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AgentId, TenantId, Timestamp, UserId};

/// A configured agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agent {
    /// Its identity.
    pub id: AgentId,
    /// The tenant.
    pub tenant_id: TenantId,
    /// Grows by one with every change.
    pub version: u32,
    /// Its name in URLs; unique in the tenant, never changed.
    pub slug: String,
    /// Its name for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// How it behaves.
    pub settings: AgentSettings,
    /// The callers' own data.
    pub metadata: Map<String, Value>,
    /// Who made it.
    pub created_by: UserId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// When it was archived; `None` while it may be used.
    pub archived_at: Option<Timestamp>,
}

/// What decides how an agent behaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSettings {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model, in the provider's spelling.
    pub model: String,
    /// The first block of the system prompt; empty for none.
    #[serde(default)]
    pub system_prompt: String,
    /// Names of the tools it may call; empty for every registered one.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The most a model may answer, in tokens; `None` leaves it to the provider.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// `None` leaves it to the provider.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Limits tighter than the server's.
    #[serde(default)]
    pub limits: AgentLimits,
    /// The optional layers' own settings, by their names; what is left out has its default.
    #[serde(default)]
    pub middleware: Map<String, Value>,
}

/// Limits of an agent; `None` leaves the server's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct AgentLimits {
    /// Model calls of a run.
    #[serde(default)]
    pub max_iterations: Option<u32>,
    /// Milliseconds that one tool call may take.
    #[serde(default)]
    pub tool_timeout_ms: Option<u64>,
    /// Milliseconds that a run may take from its first start.
    #[serde(default)]
    pub run_deadline_ms: Option<u64>,
}

/// The agent as it was when a run was accepted: changing an agent never changes a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSnapshot {
    /// The agent.
    pub id: AgentId,
    /// Its version then.
    pub version: u32,
    /// Its slug.
    pub slug: String,
    /// Its name then.
    pub name: String,
    /// Its settings then.
    pub settings: AgentSettings,
}

impl Agent {
    /// What a run accepted now keeps.
    #[must_use]
    pub fn snapshot(&self) -> AgentSnapshot {
        AgentSnapshot {
            id: self.id,
            version: self.version,
            slug: self.slug.clone(),
            name: self.name.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// What a run may take, the agent's limits applied to the server's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RunLimits {
    /// Model calls.
    pub max_iterations: u32,
    /// One tool call.
    pub tool_timeout: Duration,
    /// The whole run, from its first start, across attempts.
    pub deadline: Duration,
}

impl RunLimits {
    /// These limits, made tighter by an agent's; an agent never widens them.
    #[must_use]
    pub fn tightened(self, agent: &AgentLimits) -> Self {
        let shorter = |server: Duration, ms: Option<u64>| {
            ms.map_or(server, |ms| server.min(Duration::from_millis(ms)))
        };
        Self {
            max_iterations: agent
                .max_iterations
                .map_or(self.max_iterations, |most| most.min(self.max_iterations)),
            tool_timeout: shorter(self.tool_timeout, agent.tool_timeout_ms),
            deadline: shorter(self.deadline, agent.run_deadline_ms),
        }
    }
}

/// Whether `slug` may name an agent or a tenant: lower-case letters, digits and hyphens, at most 63,
/// not beginning with a hyphen, and not of the form of an id.
#[must_use]
pub fn is_slug(slug: &str) -> bool {
    let ok = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=63).contains(&slug.len())
        && slug.bytes().all(ok)
        && !slug.starts_with('-')
        && uuid::Uuid::try_parse(slug).is_err()
}

//! What all stores have in common.

use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use crate::{AgentStore, AuditStore, IdentityStore, RunStore, SessionStore, UsageStore};

/// Whatever a driver says; for the log only.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a store could not do its work, whatever was asked of it.
#[derive(Debug, Error)]
pub enum StoreFailure {
    /// What is stored cannot be read. Trying again will not help; an operator must look.
    #[error("{table}.{column} of {row} cannot be read")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's identity.
        row: String,
        /// What was wrong with it.
        #[source]
        source: BoxError,
    },
    /// There is no room left. Nothing was changed; it may help to try again when there is.
    #[error("the store has no room left")]
    OutOfSpace(#[source] BoxError),
    /// Who asks for the change may not make it any more: see [`NewAudit`](crate::audit_store::NewAudit).
    /// Nothing was changed.
    #[error("who asks may not act any more")]
    ActorRefused,
    /// The store did not answer in time. A change may or may not have been made: repeat it as it was.
    #[error("the store is not available")]
    Unavailable(#[source] BoxError),
}

/// All the stores of one database.
#[derive(Clone)]
pub struct Stores {
    /// Runs, their journal and their events.
    pub runs: Arc<dyn RunStore>,
    /// Sessions and messages.
    pub sessions: Arc<dyn SessionStore>,
    /// Agents.
    pub agents: Arc<dyn AgentStore>,
    /// Tenants, users and keys.
    pub identities: Arc<dyn IdentityStore>,
    /// The audit trail.
    pub audit: Arc<dyn AuditStore>,
    /// Sums over runs.
    pub usage: Arc<dyn UsageStore>,
    /// Whether the database answers.
    pub health: Arc<dyn StoreHealth>,
}

/// Tells whether the database answers.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait StoreHealth: Send + Sync {
    /// Asks it something that needs it to be there and writable.
    async fn check(&self) -> Result<(), StoreFailure>;

    /// How many connections are in use now; `None` where there are none.
    fn connections(&self) -> Option<Connections> {
        None
    }
}

/// How much of a store's connections is in use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Connections {
    /// Those that somebody works with.
    pub in_use: usize,
    /// The most that there are.
    pub limit: usize,
}

//! Where sessions and their messages are kept.

use async_trait::async_trait;
use hango_domain::access::Visibility;
use hango_domain::conversation::{Message, NewMessage};
use hango_domain::session::Session;
use hango_domain::{AgentId, RunId, SessionId, Timestamp, UserId};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::agent_store::AgentRef;
use crate::audit_store::NewAudit;
use crate::idempotency::{IdempotencyKey, Repeated};
use crate::page::{Page, PageRequest};
use crate::store::StoreFailure;

/// A session to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSession {
    /// Its identity.
    pub id: SessionId,
    /// In the tenant of this caller, created by him.
    pub created_by: hango_domain::access::Scope,
    /// With this agent of the tenant.
    pub agent: AgentRef,
    /// Its name for people.
    pub title: String,
    /// The caller's own data.
    pub metadata: Map<String, Value>,
}

/// A change of a session: what is `Some` is replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPatch {
    /// Its name for people.
    pub title: Option<String>,
    /// The caller's own data, whole.
    pub metadata: Option<Map<String, Value>>,
}

impl SessionPatch {
    /// The session after this change, were it made at `now`.
    #[must_use]
    pub fn applied_to(self, session: Session, now: Timestamp) -> Session {
        Session {
            title: self.title.unwrap_or(session.title),
            metadata: self.metadata.unwrap_or(session.metadata),
            updated_at: now,
            ..session
        }
    }
}

/// Which sessions to read; `None` leaves a condition out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SessionFilter {
    /// Only those with this agent.
    pub agent: Option<AgentId>,
    /// Only those this user created.
    pub created_by: Option<UserId>,
}

/// Which messages of a session to read, oldest first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MessageQuery {
    /// Only those behind this number; 0 for all.
    pub after_seq: u64,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// The most messages, at least 1.
    pub limit: u32,
}

/// Keeps sessions and messages. What a [`Visibility`] does not show is answered as if it were not
/// there.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Makes a session. With a key, it is the answer that is kept for it; where there is one already, that
    /// comes before all else: [`Repeated`](SessionStoreError::Repeated).
    async fn create(
        &self,
        new: NewSession,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Session, SessionStoreError>;

    /// Reads a session.
    async fn find(
        &self,
        seen: Visibility,
        session: SessionId,
    ) -> Result<Option<Session>, SessionStoreError>;

    /// Reads sessions, newest first.
    async fn list(
        &self,
        seen: Visibility,
        filter: SessionFilter,
        page: PageRequest,
    ) -> Result<Page<Session>, SessionStoreError>;

    /// Changes a session.
    async fn update(
        &self,
        seen: Visibility,
        session: SessionId,
        patch: SessionPatch,
        audit: NewAudit,
    ) -> Result<Session, SessionStoreError>;

    /// Removes a session with its runs and messages; audit rows stay. Refused while runs are pending.
    async fn delete(
        &self,
        seen: Visibility,
        session: SessionId,
        audit: NewAudit,
    ) -> Result<(), SessionStoreError>;

    /// Reads messages, oldest first; one more than the limit where there are more, so that the caller
    /// knows. `None` when the session is not there.
    async fn messages(
        &self,
        seen: Visibility,
        session: SessionId,
        query: MessageQuery,
    ) -> Result<Option<Vec<Message>>, SessionStoreError>;

    /// Appends a user's message without a run. Refused while a run is running. A key is as for
    /// [`create`](Self::create).
    async fn append(
        &self,
        seen: Visibility,
        session: SessionId,
        message: NewMessage,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Message, SessionStoreError>;
}

/// Why a [`SessionStore`] did not do what it was asked.
#[derive(Debug, Error)]
pub enum SessionStoreError {
    /// The session is not there, for this caller.
    #[error("no such session")]
    NotFound,
    /// The tenant has no such agent.
    #[error("no such agent")]
    UnknownAgent,
    /// The agent takes no new sessions.
    #[error("the agent is archived")]
    AgentArchived,
    /// The session has runs that have not ended.
    #[error("the session has {pending} pending runs")]
    Busy {
        /// How many.
        pending: u32,
    },
    /// The idempotency key was used before.
    #[error(transparent)]
    Repeated(#[from] Repeated),
    /// The store could not do its work.
    #[error(transparent)]
    Failure(#[from] StoreFailure),
}

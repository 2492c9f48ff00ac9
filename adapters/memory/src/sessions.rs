//! Sessions and messages.

use async_trait::async_trait;
use hango_domain::SessionId;
use hango_domain::access::Visibility;
use hango_domain::conversation::{Message, NewMessage};
use hango_domain::session::Session;
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::{Page, PageRequest, Position};
use hango_ports::session_store::{
    MessageQuery, NewSession, SessionFilter, SessionPatch, SessionStore, SessionStoreError,
};
use serde_json::json;

use crate::MemoryStore;
use crate::pages::page;
use crate::session_row::SessionRow;

#[async_trait]
impl SessionStore for MemoryStore {
    async fn create(
        &self,
        new: NewSession,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Session, SessionStoreError> {
        let mut state = self.lock();
        let now = self.clock.now();
        state.begin(once.as_ref(), now)?;
        let tenant = new.created_by.tenant;
        let agent = state
            .agent(tenant, &new.agent)
            .ok_or(SessionStoreError::UnknownAgent)?;
        if agent.archived_at.is_some() {
            return Err(SessionStoreError::AgentArchived);
        }
        let session = Session {
            id: new.id,
            tenant_id: tenant,
            agent_id: agent.id,
            created_by: new.created_by.user,
            title: new.title,
            metadata: new.metadata,
            created_at: now,
            updated_at: now,
        };
        state.note(audit, now)?;
        let row = SessionRow::new(session.clone());
        state.sessions.insert(session.id, row);
        state.answer(once.as_ref(), json!(session), now);
        Ok(session)
    }

    async fn find(
        &self,
        seen: Visibility,
        session: SessionId,
    ) -> Result<Option<Session>, SessionStoreError> {
        let state = self.lock();
        Ok(state.session(seen, session).map(|row| row.session.clone()))
    }

    async fn list(
        &self,
        seen: Visibility,
        filter: SessionFilter,
        request: PageRequest,
    ) -> Result<Page<Session>, SessionStoreError> {
        let state = self.lock();
        let asked = |session: &&Session| {
            seen.shows(session.tenant_id, session.created_by)
                && filter.agent.is_none_or(|it| session.agent_id == it)
                && filter.created_by.is_none_or(|it| session.created_by == it)
        };
        let rows = state.sessions.values().map(|row| &row.session);
        Ok(page(
            rows.filter(asked).cloned().collect(),
            request,
            |row| Position {
                at: row.created_at,
                id: row.id.0,
            },
        ))
    }

    async fn update(
        &self,
        seen: Visibility,
        session: SessionId,
        patch: SessionPatch,
        audit: NewAudit,
    ) -> Result<Session, SessionStoreError> {
        let mut state = self.lock();
        let now = self.clock.now();
        let found = state.session(seen, session);
        found.ok_or(SessionStoreError::NotFound)?;
        state.note(audit, now)?;
        let row = state
            .session_mut(seen, session)
            .ok_or(SessionStoreError::NotFound)?;
        let session = patch.applied_to(row.session.clone(), now);
        row.session = session.clone();
        Ok(session)
    }

    async fn delete(
        &self,
        seen: Visibility,
        session: SessionId,
        audit: NewAudit,
    ) -> Result<(), SessionStoreError> {
        let mut state = self.lock();
        let row = state
            .session(seen, session)
            .ok_or(SessionStoreError::NotFound)?;
        let pending = row.line.pending_runs;
        if pending > 0 {
            return Err(SessionStoreError::Busy { pending });
        }
        state.note(audit, self.clock.now())?;
        state.sessions.remove(&session);
        Ok(())
    }

    async fn messages(
        &self,
        seen: Visibility,
        session: SessionId,
        query: MessageQuery,
    ) -> Result<Option<Vec<Message>>, SessionStoreError> {
        let state = self.lock();
        let Some(row) = state.session(seen, session) else {
            return Ok(None);
        };
        let asked = |message: &&Message| {
            message.seq > query.after_seq && query.run.is_none_or(|run| message.run_id == Some(run))
        };
        let most = (query.limit as usize).saturating_add(1);
        let messages = row.messages.iter().filter(asked).take(most);
        Ok(Some(messages.cloned().collect()))
    }

    async fn append(
        &self,
        seen: Visibility,
        session: SessionId,
        message: NewMessage,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Message, SessionStoreError> {
        let mut state = self.lock();
        let now = self.clock.now();
        state.begin(once.as_ref(), now)?;
        let row = state
            .session(seen, session)
            .ok_or(SessionStoreError::NotFound)?;
        if row.line.running_run.is_some() {
            return Err(SessionStoreError::Busy {
                pending: row.line.pending_runs,
            });
        }
        state.note(audit, now)?;
        let row = state
            .session_mut(seen, session)
            .ok_or(SessionStoreError::NotFound)?;
        let message = row.say(message, None, now);
        state.answer(once.as_ref(), json!(message), now);
        Ok(message)
    }
}

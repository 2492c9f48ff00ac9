//! Sessions and their messages.

use hango_domain::access::visibility;
use hango_domain::conversation::{Block, Message, NewMessage, is_blank};
use hango_domain::session::Session;
use hango_domain::{MessageId, SessionId, UserId};
use hango_ports::agent_store::AgentRef;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::{Page, PageRequest, Position};
use hango_ports::session_store::{
    MessageQuery, NewSession, SessionFilter, SessionPatch, SessionStoreError,
};
use serde_json::{Map, Value};

use super::pieces::{Filling, Piece};
use super::{Action, Caller, Fault, FaultCode, Input, Made, UseCaseError, UseCases};

/// A session to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionDraft {
    /// The agent.
    pub agent: AgentRef,
    /// Its name for people; empty for none.
    pub title: String,
    /// The caller's own data.
    pub metadata: Map<String, Value>,
}

/// Which sessions to read; `None` leaves a condition out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionQuery {
    /// Only those with this agent.
    pub agent: Option<AgentRef>,
    /// Only those this user created.
    pub created_by: Option<UserId>,
}

impl UseCases {
    /// Makes a session with an agent of the tenant. With a key, once.
    pub async fn create_session(
        &self,
        caller: &Caller,
        draft: Input<SessionDraft>,
        once: Option<IdempotencyKey>,
    ) -> Result<Made<Session>, UseCaseError> {
        let SessionDraft {
            agent,
            title,
            metadata,
        } = self.with_agent_judged(caller, draft).await?.accepted()?;
        let new = NewSession {
            id: SessionId(self.ids.uuid()),
            created_by: caller.scope,
            agent,
            title,
            metadata,
        };
        let audit = self.caller_audit(caller, Action::SessionCreate, new.id.0);
        match self.stores.sessions.create(new, audit, once.clone()).await {
            Err(SessionStoreError::UnknownAgent) => {
                Err(UseCaseError::Invalid(vec![unknown_agent()]))
            }
            Err(SessionStoreError::Repeated(repeated)) => {
                self.repeated(caller, None, once.as_ref(), repeated).await
            }
            done => Ok(Made::new(done?)),
        }
    }

    /// Reads a session.
    pub async fn session(
        &self,
        caller: &Caller,
        session: SessionId,
    ) -> Result<Session, UseCaseError> {
        let seen = visibility(&caller.scope);
        let found = self.stores.sessions.find(seen, session).await?;
        found.ok_or(UseCaseError::NotFound)
    }

    /// Reads sessions, newest first.
    pub async fn sessions(
        &self,
        caller: &Caller,
        query: SessionQuery,
        request: PageRequest,
    ) -> Result<Page<Session>, UseCaseError> {
        let mut filter = SessionFilter {
            agent: None,
            created_by: query.created_by,
        };
        if let Some(agent) = query.agent {
            filter.agent = self.filtered_agent(caller, agent).await?;
            if filter.agent.is_none() {
                return Ok(nothing());
            }
        }
        let seen = visibility(&caller.scope);
        let mut filling = Filling::of(request, |session: &Session| {
            Some(Position {
                at: session.created_at,
                id: session.id.0,
            })
        });
        while let Some(request) = filling.asks() {
            let page = self.stores.sessions.list(seen, filter, request).await?;
            filling.take(page);
        }
        Ok(filling.page())
    }

    /// Changes a session.
    pub async fn update_session(
        &self,
        caller: &Caller,
        session: SessionId,
        patch: Input<SessionPatch>,
    ) -> Result<Session, UseCaseError> {
        let patch = self.in_session(caller, session, patch).await?;
        let audit = self.caller_audit(caller, Action::SessionUpdate, session.0);
        let seen = visibility(&caller.scope);
        let sessions = &self.stores.sessions;
        Ok(sessions.update(seen, session, patch, audit).await?)
    }

    /// Removes a session with all that is under it; refused while it has pending runs.
    pub async fn delete_session(
        &self,
        caller: &Caller,
        session: SessionId,
        sent: Input<()>,
    ) -> Result<(), UseCaseError> {
        self.in_session(caller, session, sent).await?;
        let audit = self.caller_audit(caller, Action::SessionDelete, session.0);
        let seen = visibility(&caller.scope);
        Ok(self.stores.sessions.delete(seen, session, audit).await?)
    }

    /// Reads messages, oldest first.
    pub async fn messages(
        &self,
        caller: &Caller,
        session: SessionId,
        query: Input<MessageQuery>,
    ) -> Result<Piece<Message>, UseCaseError> {
        let query = self.in_session(caller, session, query).await?;
        let seen = visibility(&caller.scope);
        let mut filling = Filling::new(query.limit, query.after_seq, |it: &Message| it.seq);
        while let Some((after_seq, limit)) = filling.wants() {
            let query = MessageQuery {
                after_seq,
                run: query.run,
                limit,
            };
            let found = self.stores.sessions.messages(seen, session, query).await?;
            let mut rows = found.ok_or(UseCaseError::NotFound)?;
            let more = rows.len() > limit as usize;
            rows.truncate(limit as usize);
            let next = rows.last().filter(|_| more).map(|message| message.seq);
            filling.add(rows, next);
        }
        Ok(filling.piece())
    }

    /// Appends a user's message without a run; refused while a run of the session is running. With a key,
    /// once.
    pub async fn append_message(
        &self,
        caller: &Caller,
        session: SessionId,
        content: Input<Vec<Block>>,
        once: Option<IdempotencyKey>,
    ) -> Result<Made<Message>, UseCaseError> {
        let content = content.judged(|content, faults| judge_content("/content", content, faults));
        let content = self.in_session(caller, session, content).await?;
        let message = NewMessage::user(MessageId(self.ids.uuid()), content);
        let audit = self.caller_audit(caller, Action::MessageCreate, message.id.0);
        let seen = visibility(&caller.scope);
        let sessions = &self.stores.sessions;
        let append = sessions.append(seen, session, message, audit, once.clone());
        match append.await {
            Err(SessionStoreError::Repeated(repeated)) => {
                let (session, once) = (Some(session), once.as_ref());
                self.repeated(caller, session, once, repeated).await
            }
            done => Ok(Made::new(done?)),
        }
    }

    /// What was sent for a session, if nothing is wrong with it. Whether the session is there comes
    /// first; where nothing is wrong the store will say that.
    pub(super) async fn in_session<T>(
        &self,
        caller: &Caller,
        session: SessionId,
        sent: Input<T>,
    ) -> Result<T, UseCaseError> {
        if sent.is_faulty() {
            self.session(caller, session).await?;
        }
        sent.accepted()
    }

    /// The draft with a fault if there is no such agent. Where nothing else is wrong the store will say
    /// that.
    async fn with_agent_judged(
        &self,
        caller: &Caller,
        draft: Input<SessionDraft>,
    ) -> Result<Input<SessionDraft>, UseCaseError> {
        if !draft.is_faulty() {
            return Ok(draft);
        }
        let agent = draft.value().agent.clone();
        let found = self.stores.agents.find(caller.scope.tenant, agent).await?;
        Ok(draft.judged(|_, faults| {
            if found.is_none() {
                faults.push(unknown_agent());
            }
        }))
    }
}

/// What a client may say: at least one text, and none that is blank.
pub(super) fn judge_content(pointer: &str, content: &[Block], faults: &mut Vec<Fault>) {
    let mut empty = |pointer: String, detail| {
        faults.push(Fault::new(pointer, FaultCode::Empty, detail));
    };
    if content.is_empty() {
        empty(pointer.to_owned(), "at least one block is needed");
    }
    for (at, block) in content.iter().enumerate() {
        if block.as_text().is_some_and(is_blank) {
            empty(format!("{pointer}/{at}/text"), "the text is blank");
        }
    }
}

/// A page of a list in which nothing is to be found.
pub(super) const fn nothing<T>() -> Page<T> {
    Page {
        items: Vec::new(),
        next: None,
    }
}

fn unknown_agent() -> Fault {
    let detail = "the tenant has no such agent";
    Fault::new("/agent", FaultCode::UnknownAgent, detail)
}

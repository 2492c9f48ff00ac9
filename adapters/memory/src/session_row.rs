//! A session with all that belongs to it. Its runs live in it, so that a change of one, what it says
//! and the session's line can't come apart.

use std::collections::BTreeMap;

use hango_domain::RunId;
use hango_domain::Timestamp;
use hango_domain::agent::AgentSnapshot;
use hango_domain::conversation::{Message, NewMessage};
use hango_domain::event::Event;
use hango_domain::journal::{self, ToolCall};
use hango_domain::run::{Applied, Change, Closing, Run, TransitionError};
use hango_domain::session::{Session, SessionLine};

/// A session, its line, its messages and its runs.
pub(crate) struct SessionRow {
    pub(crate) session: Session,
    pub(crate) line: SessionLine,
    pub(crate) messages: Vec<Message>,
    pub(crate) runs: BTreeMap<RunId, RunRow>,
}

/// A run with what belongs to it alone.
pub(crate) struct RunRow {
    pub(crate) run: Run,
    pub(crate) agent: AgentSnapshot,
    pub(crate) journal: Vec<ToolCall>,
    pub(crate) events: Vec<Event>,
}

/// What became of a change.
pub(crate) type Changed = Result<Applied, TransitionError>;

impl SessionRow {
    /// A session in which nothing was said.
    pub(crate) const fn new(session: Session) -> Self {
        Self {
            session,
            line: SessionLine {
                pending_runs: 0,
                running_run: None,
                last_run_no: 0,
                last_seq: 0,
            },
            messages: Vec::new(),
            runs: BTreeMap::new(),
        }
    }

    /// Makes a change of one of its runs with all that belongs to it; `None` if it has no such run.
    pub(crate) fn change(
        &mut self,
        id: RunId,
        mut change: Change,
        now: Timestamp,
    ) -> Option<Changed> {
        let row = self.runs.get_mut(&id)?;
        change.clean();
        if let Some(closing @ None) = change.closing_mut() {
            *closing = row.closing();
        }
        let applied = match row.run.clone().apply(&change, now) {
            Ok(applied) => applied,
            Err(refused) => return Some(Err(refused)),
        };
        if !applied.repeated {
            let effects = change.effects(&row.run, &applied.run);
            effects.enter(&mut row.journal, id, now);
            row.events.extend(applied.events.iter().cloned());
            let from = row.run.state.status();
            row.run = applied.run.clone();
            self.line = self.line.moved(id, from, applied.run.state.status());
            for message in effects.said {
                self.say(message, Some(id), now);
            }
        }
        Some(Ok(applied))
    }

    /// Appends a message.
    pub(crate) fn say(
        &mut self,
        message: NewMessage,
        run: Option<RunId>,
        now: Timestamp,
    ) -> Message {
        self.line = self.line.said();
        let message = message.stored(self.session.id, run, self.line.last_seq, now);
        self.messages.push(message.clone());
        message
    }
}

impl RunRow {
    /// A run as it was accepted.
    pub(crate) fn accepted(run: Run, agent: AgentSnapshot) -> Self {
        let (run, event) = run.accepted();
        Self {
            run,
            agent,
            journal: Vec::new(),
            events: vec![event],
        }
    }

    /// The journal of the answered turn that is not complete; empty when there is none.
    pub(crate) fn open_calls(&self) -> Vec<ToolCall> {
        if !journal::has_open_answer(&self.run) {
            return Vec::new();
        }
        let turn = self.run.progress.answered_turn;
        let open = self.journal.iter().filter(|call| call.turn == turn);
        open.cloned().collect()
    }

    /// What closes the open turn, should a change end the run without its holder.
    fn closing(&self) -> Option<Closing> {
        let id = journal::closing_message_id(self.run.id);
        journal::has_open_answer(&self.run).then(|| journal::close(&self.open_calls(), id))
    }
}

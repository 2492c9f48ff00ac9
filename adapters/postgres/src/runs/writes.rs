//! Changes of runs, collected to be written by one statement: what [`STORE`](super::store::STORE) calls
//! its documents.

use std::collections::BTreeMap;

use hango_domain::journal::{CallState, ToolCall};
use hango_domain::run::{Applied, Change, Effects, Run, RunStatus};
use hango_domain::session::SessionLine;
use hango_domain::{RunId, SessionId, Timestamp};

use super::changed::Changed;
use super::documents::{Begun, Line, Said, ToldBy, WentOn};

/// Changes that were decided at one moment.
pub(crate) struct Writes {
    pub(super) at: Timestamp,
    pub(super) changed: Vec<Changed>,
    pub(super) lines: BTreeMap<SessionId, Line>,
    pub(super) said: Vec<Said>,
    pub(super) begun: Vec<Begun>,
    pub(super) went_on: Vec<WentOn>,
    pub(super) told: Vec<ToldBy>,
}

impl Writes {
    /// No changes yet, made at `at`.
    pub(crate) const fn new(at: Timestamp) -> Self {
        Self {
            at,
            changed: Vec::new(),
            lines: BTreeMap::new(),
            said: Vec::new(),
            begun: Vec::new(),
            went_on: Vec::new(),
            told: Vec::new(),
        }
    }

    /// Adds a change of `before` that was `applied`, in a session that stood at `line`. Returns where
    /// the session stands then.
    pub(crate) fn add(
        &mut self,
        before: &Run,
        applied: &Applied,
        change: Change,
        line: SessionLine,
    ) -> SessionLine {
        let after = &applied.run;
        let effects = change.effects(before, after);
        let (from, to) = (before.state.status(), after.state.status());
        let mut line = line.moved(before.id, from, to);
        self.changed.push(Changed::new(before, after));
        self.enter(before.id, &effects);
        let silent = effects.said.is_empty();
        for message in effects.said {
            line = line.said();
            self.said.push(Said::new(before.id, message, line.last_seq));
        }
        self.told.extend(ToldBy::new(after, &applied.events));
        if from != to {
            let stops = from == RunStatus::Running;
            let moved = self.lines.entry(before.session_id);
            let moved = moved.or_insert_with(|| Line::new(before.session_id));
            moved.ended += i32::from(to.is_terminal());
            moved.starts = (to == RunStatus::Running).then_some(before.id);
            moved.stops |= stops;
            if stops || !silent {
                moved.last_seq = Some(line.last_seq);
            }
        }
        line
    }

    /// What the effects do to the journal, as [`Effects::enter`] says.
    fn enter(&mut self, run_id: RunId, effects: &Effects) {
        let turn = effects.turn;
        for call in effects.begun.iter().cloned() {
            let call = ToolCall::begin(run_id, turn, call, self.at);
            self.begun.push(Begun::new(call));
        }
        // ToolCall::settled
        for call in &effects.settled {
            self.went_on.push(WentOn {
                v: 1,
                run_id,
                turn,
                position: call.position,
                state: if call.in_doubt {
                    CallState::InDoubt
                } else {
                    CallState::Finished
                },
                starts: 0,
                result: Some(call.result.clone()),
            });
        }
        // ToolCall::started
        for call in &effects.started {
            self.went_on.push(WentOn {
                v: 1,
                run_id,
                turn,
                position: call.position,
                state: CallState::Started,
                starts: 1,
                result: None,
            });
        }
    }
}

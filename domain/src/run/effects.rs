//! What a change leaves behind besides the run and its events.

use super::{Change, Closing, Run, StartedCall};
use crate::conversation::NewMessage;
use crate::journal::{CallResult, NewToolCall, ToolCall};
use crate::{RunId, Timestamp};

/// What a store keeps in the transaction of a change that was made, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// The turn to which the calls belong.
    pub turn: u32,
    /// Calls that enter the journal.
    pub begun: Vec<NewToolCall>,
    /// Calls of which it is known now what came, or that nobody will know.
    pub settled: Vec<CallResult>,
    /// Calls of the journal whose execution begins, once more or for the first time.
    pub started: Vec<StartedCall>,
    /// Messages that the session gets.
    pub said: Vec<NewMessage>,
}

impl Change {
    /// What this change left behind when it led from `before` to `after`; for one that was made now,
    /// not for a repeat.
    #[must_use]
    pub fn effects(self, before: &Run, after: &Run) -> Effects {
        let nothing = Effects {
            turn: after.progress.answered_turn,
            ..Effects::default()
        };
        match self {
            Self::Renew { .. } | Self::Retry(_) => nothing,
            Self::Claim { .. } if before.attempt > 0 => nothing,
            Self::Claim { .. } => Effects {
                said: vec![NewMessage::user(
                    after.input_message_id,
                    after.input.clone(),
                )],
                ..nothing
            },
            Self::Repair(change) => Effects {
                said: vec![change.message],
                ..nothing
            },
            Self::Answer(change) => Effects {
                begun: change.calls,
                said: vec![change.message],
                ..nothing
            },
            Self::Resume(change) => Effects {
                settled: change.in_doubt,
                started: change.starts,
                ..nothing
            },
            Self::Record(change) => Effects {
                settled: vec![change.result],
                started: change.starts.into_iter().collect(),
                ..nothing
            },
            Self::CompleteTurn(change) => Effects {
                settled: change.results,
                said: vec![change.message],
                ..nothing
            },
            Self::Finish(change) => Effects {
                settled: change.results,
                said: change.messages,
                ..nothing
            },
            Self::GiveBack(change) => nothing.closed(change.closing, after),
            Self::RequestCancel { closing } => nothing.closed(closing, after),
            Self::Reclaim(change) => nothing.closed(change.closing, after),
        }
    }
}

impl Effects {
    /// With what closes the open turn, if the run ended.
    fn closed(self, closing: Option<Closing>, after: &Run) -> Self {
        match closing {
            Some(closing) if after.state.status().is_terminal() => Self {
                settled: closing.results,
                said: vec![closing.message],
                ..self
            },
            Some(_) | None => self,
        }
    }

    /// Brings the journal of `run`, or the part of it that has the turn's calls, up to date.
    pub fn enter(&self, journal: &mut Vec<ToolCall>, run: RunId, now: Timestamp) {
        let begun = self.begun.iter().cloned();
        journal.extend(begun.map(|call| ToolCall::begin(run, self.turn, call, now)));
        for call in journal.iter_mut().filter(|call| call.turn == self.turn) {
            let position = call.position;
            if let Some(result) = self.settled.iter().find(|it| it.position == position) {
                *call = call.clone().settled(result, now);
            }
            if self.started.iter().any(|it| it.position == position) {
                *call = call.clone().started(now);
            }
        }
    }
}

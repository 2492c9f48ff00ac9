//! What a store must have on record after a change, by the domain's rules.

use hango_domain::Timestamp;
use hango_domain::journal::{self, ToolCall};
use hango_domain::run::{Applied, Change, Closing, TransitionError};

use crate::OnRecord;

impl OnRecord {
    /// Makes the change as a store must: all that belongs to it, or nothing.
    pub fn apply(
        &mut self,
        mut change: Change,
        now: Timestamp,
    ) -> Result<Applied, TransitionError> {
        match &mut change {
            Change::GiveBack(change) => change.closing = self.closing(),
            Change::Reclaim(change) => change.closing = self.closing(),
            Change::RequestCancel { closing } => *closing = self.closing(),
            Change::Claim { .. }
            | Change::Renew { .. }
            | Change::Repair(_)
            | Change::Answer(_)
            | Change::Resume(_)
            | Change::Record(_)
            | Change::CompleteTurn(_)
            | Change::Retry(_)
            | Change::Finish(_) => {}
        }
        let applied = self.run.clone().apply(&change, now)?;
        if applied.repeated {
            return Ok(applied);
        }
        let effects = change.effects(&self.run, &applied.run);
        effects.enter(&mut self.calls, self.run.id, now);
        for message in effects.said {
            let seq = self.messages.len() as u64 + 1;
            let stored = message.stored(self.run.session_id, Some(self.run.id), seq, now);
            self.messages.push(stored);
        }
        self.events.extend(applied.events.iter().cloned());
        self.run = applied.run.clone();
        Ok(applied)
    }

    /// The journal of the answered turn that is not complete.
    #[must_use]
    pub fn open_turn(&self) -> Vec<ToolCall> {
        if !journal::has_open_answer(&self.run) {
            return Vec::new();
        }
        let turn = self.run.progress.answered_turn;
        let open = self.calls.iter().filter(|call| call.turn == turn);
        open.cloned().collect()
    }

    fn closing(&self) -> Option<Closing> {
        let id = journal::closing_message_id(self.run.id);
        journal::has_open_answer(&self.run).then(|| journal::close(&self.open_turn(), id))
    }
}

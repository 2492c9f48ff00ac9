//! One run in a session, kept as a store keeps it: by the domain's own rules.

use crate::Timestamp;
use crate::conversation::{Block, Message, NewMessage, Repair as HistoryRepair, Role, repair};
use crate::journal::{self, CallState, ToolCall};
use crate::run::fixtures::{at, claim, message_id, queued, take_back};
use crate::run::{Change, Closing, GiveBack, Lease, Reclaim, Run, RunState};

#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) run: Run,
    pub(super) messages: Vec<Message>,
    pub(super) journal: Vec<ToolCall>,
    now: Timestamp,
}

impl Store {
    /// A run that was accepted and nothing else.
    pub(super) fn new() -> Self {
        Self {
            run: queued(),
            messages: Vec::new(),
            journal: Vec::new(),
            now: at(0),
        }
    }

    /// The run after it was claimed, as soon as it may be.
    pub(super) fn claimed(mut self) -> Self {
        self.now = self
            .run
            .available_at
            .map_or(self.now, |it| it.max(self.now));
        self.make(claim(1));
        self
    }

    /// The run after its holder died and it was claimed again.
    pub(super) fn reclaimed(mut self) -> Self {
        if self.run.lease().is_some() {
            self.make(take_back());
        }
        self.claimed()
    }

    pub(super) fn lease(&self) -> Lease {
        self.run.lease().expect("a claimed run")
    }

    /// Makes a change that the rules allow, and its repeat, which has to change nothing.
    pub(super) fn make(&mut self, change: Change) {
        let change = self.closed(change);
        let applied = self.run.clone().apply(&change, self.now);
        let after = applied.expect("a change that the store accepts").run;
        if change.write_id().is_some() {
            let again = after.clone().apply(&change, self.now);
            assert!(again.is_ok_and(|again| again.repeated));
        }
        let effects = change.effects(&self.run, &after);
        effects.enter(&mut self.journal, self.run.id, self.now);
        self.run = after;
        for message in effects.said {
            self.say(message, true);
        }
    }

    /// What somebody says; with `by_run` on behalf of the run.
    pub(super) fn say(&mut self, message: NewMessage, by_run: bool) {
        let seq = self.messages.len() as u64 + 1;
        let run = by_run.then_some(self.run.id);
        let stored = message.stored(self.run.session_id, run, seq, self.now);
        self.messages.push(stored);
    }

    /// A store closes an open turn where the run ends without its holder.
    fn closed(&self, change: Change) -> Change {
        let closing = self.closing();
        match change {
            Change::GiveBack(change) => Change::GiveBack(GiveBack { closing, ..change }),
            Change::Reclaim(change) => Change::Reclaim(Reclaim { closing, ..change }),
            Change::RequestCancel { .. } => Change::RequestCancel { closing },
            other => other,
        }
    }

    fn closing(&self) -> Option<Closing> {
        let id = journal::closing_message_id(self.run.id);
        journal::has_open_answer(&self.run).then(|| journal::close(&self.open_calls(), id))
    }

    /// The journal of the answered turn that is not complete.
    pub(super) fn open_calls(&self) -> Vec<ToolCall> {
        if !journal::has_open_answer(&self.run) {
            return Vec::new();
        }
        let turn = self.run.progress.answered_turn;
        let calls = self.journal.iter().filter(|call| call.turn == turn);
        calls.cloned().collect()
    }

    pub(super) fn call(&self, turn: u32, position: u32) -> &ToolCall {
        let mut calls = self.journal.iter();
        calls
            .find(|call| (call.turn, call.position) == (turn, position))
            .expect("a journaled call")
    }

    /// The journal: each call's id, state and executions.
    pub(super) fn journaled(&self) -> Vec<(&str, CallState, u32)> {
        self.journal
            .iter()
            .map(|call| (call.tool_use_id.as_str(), call.state, call.executions))
            .collect()
    }

    /// The conversation, a line for each block.
    pub(super) fn said(&self) -> Vec<String> {
        self.messages.iter().flat_map(lines).collect()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.run.state.status().is_terminal()
    }

    /// How the run ended: its state's word, or its error's.
    pub(super) fn ended(&self) -> &'static str {
        match &self.run.state {
            RunState::Failed { error, .. } => error.code.as_str(),
            other => other.status().as_str(),
        }
    }

    /// Fails unless the run ended in a way that the next run of the session can go on from: nothing but
    /// partial messages has to be dropped, nothing but users' messages to be joined.
    pub(super) fn check_end(&self) {
        assert!(self.has_ended(), "{:?}", self.run.state);
        assert!(self.journal.iter().all(ToolCall::is_settled));
        let mut next = self.clone();
        next.say(
            NewMessage::user(message_id(77), vec![Block::text("go on")]),
            false,
        );
        for made in repair(&next.messages).repairs {
            let harmless = matches!(
                made,
                HistoryRepair::PartialDropped { .. } | HistoryRepair::Merged { .. }
            );
            assert!(harmless, "{made:?} in {:#?}", self.said());
        }
    }
}

fn lines(message: &Message) -> Vec<String> {
    let who = match (message.role, message.partial) {
        (_, true) => "partial",
        (Role::User, false) => "user",
        (Role::Assistant, false) => "assistant",
    };
    let line = |block: &Block| match block {
        Block::Text { text, .. } => format!("{who}: {text}"),
        Block::ToolUse { id, name, .. } => format!("{who}: {name}({id})"),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
            ..
        } => {
            let came = if *is_error { "failed" } else { "gave" };
            format!("{who}: {tool_use_id} {came} {content}")
        }
        other => format!("{who}: {other:?}"),
    };
    message.content.iter().map(line).collect()
}

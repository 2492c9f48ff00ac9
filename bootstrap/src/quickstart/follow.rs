//! A run, printed for a person as it happens: deltas as they come, everything else from the store, so
//! that nothing is shown that is not there.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context;
use hango_application::live::{LiveEvents, Watched};
use hango_domain::access::Visibility;
use hango_domain::conversation::{Block, Message, Role};
use hango_domain::event::{Event, EventKind};
use hango_domain::journal::ToolCall;
use hango_domain::run::{Run, RunStatus};
use hango_ports::Stores;
use hango_ports::event_sink::{DeltaKind, LiveEvent};
use hango_ports::session_store::MessageQuery;

/// How long at most until the store is asked again.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// How many rows are read at once.
const PIECE: u32 = 200;

/// Follows runs.
pub(super) struct Follower<'a> {
    pub(super) stores: &'a Stores,
    pub(super) live: &'a LiveEvents,
    pub(super) seen: Visibility,
}

impl Follower<'_> {
    /// Prints a run until it has ended; how it did.
    pub(super) async fn follow(&self, run: &Run) -> anyhow::Result<RunStatus> {
        // Watched before it is read, so that nothing falls in between.
        let mut watch = self.live.watch(run.id);
        let mut after = 0;
        let mut line = Line::default();
        let (mut turn, mut watched) = (0, false);
        loop {
            let events = self
                .stores
                .runs
                .events(self.seen, run.id, after, PIECE)
                .await?
                .context("the run is gone")?;
            for event in &events {
                (after, turn) = (event.n, event.turn);
                self.print(run, event, &mut line).await?;
                if event.kind.is_terminal() {
                    return self.summary(run).await;
                }
            }
            if events.len() == PIECE as usize {
                continue;
            }
            if !watched {
                // Of an answer that was under way before, deltas may be missing: it is printed whole.
                line.passed = turn;
                watched = true;
            }
            // Deltas come before the event of their message, so the store is read again behind them.
            while let Ok(Watched::Event(LiveEvent::Delta(delta))) =
                tokio::time::timeout(READ_AGAIN, watch.next()).await
            {
                if delta.kind == DeltaKind::Text {
                    line.stream(delta.turn, &delta.text);
                }
            }
        }
    }

    async fn print(&self, run: &Run, event: &Event, line: &mut Line) -> anyhow::Result<()> {
        match &event.kind {
            EventKind::MessageCompleted { message_id } => {
                let messages = self.messages(run).await?;
                if let Some(message) = messages.iter().find(|message| message.id == *message_id) {
                    line.message(event.turn, message);
                }
            }
            EventKind::ToolStarted { position, name, .. } => {
                let call = self.call(run, event.turn, *position).await?;
                let input = call.map(|call| call.input).unwrap_or_default();
                line.end();
                say!("Tool      {name} {}", serde_json::Value::Object(input));
            }
            EventKind::ToolCompleted {
                position, is_error, ..
            } => {
                let call = self.call(run, event.turn, *position).await?;
                let result = call.and_then(|call| call.result);
                let text = result.map(|result| result.for_user.unwrap_or(result.for_llm));
                let sign = if *is_error { "✗" } else { "→" };
                line.end();
                say!("       {sign}  {}", text.unwrap_or_default());
            }
            EventKind::TurnDiscarded => {
                line.end();
                say!("          (the answer broke off; the turn is begun anew)");
            }
            EventKind::RunRequeued { .. } => {
                line.end();
                say!("          (the run waits to go on)");
            }
            EventKind::RunQueued
            | EventKind::RunStarted { .. }
            | EventKind::RunSucceeded
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled
            | EventKind::TurnStarted
            | EventKind::TurnCompleted { .. }
            | EventKind::TodosUpdated { .. }
            | EventKind::Newer(_) => {}
        }
        Ok(())
    }

    async fn summary(&self, run: &Run) -> anyhow::Result<RunStatus> {
        let run = self
            .stores
            .runs
            .find(self.seen, run.id)
            .await?
            .context("the run is gone")?;
        let status = run.state.status();
        say!("");
        if let Some(error) = run.state.error() {
            say!("Run       {} {status}: {}", run.id, error.message);
        } else {
            say!("Run       {} {status}", run.id);
        }
        say!(
            "Usage     {} model {}, {} tokens in, {} out",
            run.iterations,
            if run.iterations == 1 { "call" } else { "calls" },
            run.usage.input_tokens,
            run.usage.output_tokens
        );
        say!("Trace     {}", run.trace.trace_id);
        Ok(status)
    }

    async fn messages(&self, run: &Run) -> anyhow::Result<Vec<Message>> {
        let query = MessageQuery {
            after_seq: 0,
            run: Some(run.id),
            limit: PIECE,
        };
        let sessions = &self.stores.sessions;
        let found = sessions.messages(self.seen, run.session_id, query).await?;
        found.context("the session is gone")
    }

    async fn call(&self, run: &Run, turn: u32, position: u32) -> anyhow::Result<Option<ToolCall>> {
        let calls = self.stores.runs.tool_calls(self.seen, run.id).await?;
        let mut calls = calls.context("the run is gone")?.into_iter();
        Ok(calls.find(|call| call.turn == turn && call.position == position))
    }
}

/// The line being printed.
#[derive(Default)]
struct Line {
    /// Whether an answer is being streamed to it.
    open: bool,
    /// The last turn of which no delta is printed: its answer was, or will be printed whole.
    passed: u32,
}

impl Line {
    fn stream(&mut self, turn: u32, text: &str) {
        if turn <= self.passed {
            return;
        }
        let who = if self.open { "" } else { "Agent     " };
        self.open = true;
        let mut out = std::io::stdout();
        // Where nobody reads, nothing is lost.
        let _ = write!(out, "{who}{text}").and_then(|()| out.flush());
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.open) {
            say!("");
        }
    }

    /// A whole message; what was streamed of it is not printed again.
    fn message(&mut self, turn: u32, message: &Message) {
        let streamed = self.open;
        self.end();
        let who = match message.role {
            Role::User => "You       ",
            Role::Assistant => {
                self.passed = turn;
                if streamed {
                    return;
                }
                "Agent     "
            }
        };
        for text in message.content.iter().filter_map(Block::as_text) {
            say!("{who}{text}");
        }
    }
}

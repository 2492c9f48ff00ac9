//! How a run ended: told once, by whoever ended it.

use std::sync::Arc;

use hango_domain::Timestamp;
use hango_domain::conversation::{Block, StopReason};
use hango_domain::event::{Event, EventKind};
use hango_domain::run::{AfterTurn, Boundary, Change, Outcome, RunStatus};
use hango_ports::run_store::Story;
use hango_ports::telemetry::{ErrorType, RunContent, RunEnd};

use tokio::time::timeout;

use super::Account;
use crate::engine::Shared;
use crate::story::{STORY, life_of};

/// What is known of a run's end before it is told.
pub(super) struct Ending {
    at: Timestamp,
    error: Option<ErrorType>,
    stop_reason: Option<StopReason>,
    answer: Vec<Block>,
}

impl Ending {
    /// What a change says of the end, if it may be one.
    pub(super) fn of(change: &Change, content: bool) -> Option<Self> {
        let nothing = Self {
            at: Timestamp::from_micros(0),
            error: None,
            stop_reason: None,
            answer: Vec::new(),
        };
        match change {
            Change::Finish(end) => {
                let last = end.final_message_id;
                let answer = end.messages.iter().find(|it| Some(it.id) == last);
                Some(Self {
                    error: match &end.outcome {
                        Outcome::Failed(error) => Some(error.code.into()),
                        Outcome::Succeeded | Outcome::Cancelled => None,
                    },
                    stop_reason: end.stop_reason,
                    answer: answer
                        .filter(|_| content)
                        .map(|it| it.content.clone())
                        .unwrap_or_default(),
                    ..nothing
                })
            }
            // Both end a run whose cancel was asked for.
            Change::GiveBack(_)
            | Change::CompleteTurn(Boundary {
                then: AfterTurn::GiveBack(_),
                ..
            }) => Some(nothing),
            _ => None,
        }
    }

    /// The same with what the store told of it.
    pub(super) fn told(self, end: Option<&Event>, now: Timestamp) -> Self {
        Self {
            at: end.map_or(now, |event| event.at),
            error: match end.map(|event| &event.kind) {
                Some(EventKind::RunFailed { error }) => Some(error.code.into()),
                Some(_) => None,
                // A repeat is told nothing.
                None => self.error,
            },
            ..self
        }
    }
}

impl Account {
    /// The run ended here.
    pub(in crate::engine) async fn ended(&self, shared: &Shared, status: RunStatus) -> Box<RunEnd> {
        let story = self.story(shared).await;
        let mut state = self.lock();
        let ending = state.ending.take();
        let at = ending.as_ref().map_or_else(|| self.now(), |it| it.at);
        let error = ending.as_ref().and_then(|it| it.error.clone());
        let error = (status == RunStatus::Failed).then_some(error).flatten();
        let before = |event: &&Event| event.attempt < self.attempt;
        let earlier = story.iter().flat_map(|story| &story.life).filter(before);
        let mut life = life_of(earlier);
        life.append(&mut state.life);
        let end = RunEnd {
            about: Arc::clone(&self.about),
            created_at: self.claimed.created_at,
            started_at: self.claimed.started_at,
            ended_at: at,
            status,
            error: error.clone(),
            stop_reason: ending.as_ref().and_then(|it| it.stop_reason),
            iterations: state.iterations,
            inference_calls: self.claimed.iterations.saturating_add(state.asked),
            tool_calls: story.map_or(state.tool_calls, |story| story.tool_calls),
            attempts: self.attempt,
            usage: state.usage,
            todos: state.todos,
            life,
            content: self.wants.content.then(|| RunContent {
                input: self.claimed.input.clone(),
                answer: ending.map(|it| it.answer).unwrap_or_default(),
            }),
        };
        drop(state);
        self.break_off_turn(at, |called| {
            error.map(|_| called.unwrap_or(ErrorType::OTHER))
        });
        Box::new(end)
    }

    /// What is on record of the run, where there was a claim before this one.
    async fn story(&self, shared: &Shared) -> Option<Story> {
        if self.attempt == 1 {
            return None;
        }
        match timeout(STORY, shared.parts.runs.story(self.about.run)).await {
            Ok(Ok(story)) => story,
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "what happened to a run before its last claim is not told"
                );
                None
            }
            Err(_) => {
                tracing::warn!("what happened to a run before its last claim was not read in time");
                None
            }
        }
    }
}

//! What is told of a run that nobody holds: of one that was taken from its holder, and of one that ended
//! without. It is read for that, and only where somebody wants it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hango_domain::event::{Event, EventKind};
use hango_domain::layers;
use hango_domain::memory::RunMemory;
use hango_domain::run::{RequeueReason, RunStatus};
use hango_domain::{RunId, Timestamp};
use hango_ports::run_store::Story;
use hango_ports::telemetry::{
    ErrorType, Interval, Life, Observation, RunEnd, RunFacts, TodoCounts, TurnEnd,
};
use hango_ports::{RunStore, Telemetry};
use tokio::time::timeout;

/// How long the store may take to say what happened to a run.
pub(crate) const STORY: Duration = Duration::from_secs(5);

/// Tells of runs that nobody holds.
pub(crate) struct StoryTeller {
    /// Where they are kept.
    pub(crate) runs: Arc<dyn RunStore>,
    /// Who is told.
    pub(crate) telemetry: Arc<dyn Telemetry>,
    /// What kind of provider bears a name.
    pub(crate) kinds: BTreeMap<String, String>,
}

/// A run that was taken or ended by somebody who does not hold it.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// Which.
    pub(crate) run: RunId,
    /// The claim that was in force, if one was.
    pub(crate) abandoned: Option<Abandoned>,
    /// Where it stands now.
    pub(crate) status: RunStatus,
}

/// A claim that ended without its holder's doing.
#[derive(Clone, Debug)]
pub(crate) struct Abandoned {
    /// Which, counting from 1.
    pub(crate) attempt: u32,
    /// When it ran out.
    pub(crate) expired_at: Timestamp,
    /// Why its turn was not completed.
    pub(crate) error: ErrorType,
}

impl StoryTeller {
    /// Tells of all of them, one after the other, beside everything else: whoever took or ended them goes on,
    /// and need not be there any more.
    pub(crate) fn tell_aside(self, taken: Vec<Taken>) {
        if taken.is_empty() {
            return;
        }
        tokio::spawn(async move {
            for run in taken {
                self.tell(run).await;
            }
        });
    }

    /// Tells of the turn that a lost holder left behind, and of the run's end, if this was one. Called by
    /// whoever took the run or ended it, and by nobody else.
    async fn tell(&self, taken: Taken) {
        let Taken {
            run,
            abandoned,
            status,
        } = taken;
        let asked = abandoned.is_some() || status.is_terminal();
        let story = if asked && self.telemetry.wants().facts {
            self.read(run).await
        } else {
            None
        };
        let about = story.as_ref().map(|story| {
            let provider = self.kinds.get(&story.agent.settings.provider).cloned();
            Arc::new(RunFacts::new(&story.run, Some(&story.agent), provider))
        });
        let known = story.as_ref().zip(about.as_ref());
        if let (Some((story, about)), Some(abandoned)) = (known, abandoned)
            && let Some(turn) = left_behind(story, about, abandoned)
        {
            let told = Observation::TurnEnded(Box::new(turn));
            self.telemetry.observe(told);
        }
        if status.is_terminal() {
            let end = known.and_then(|(story, about)| end_of(story, about));
            let end = end.map(Box::new);
            let told = Observation::RunEnded { run, status, end };
            self.telemetry.observe(told);
        }
    }

    async fn read(&self, run: RunId) -> Option<Story> {
        match timeout(STORY, self.runs.story(run)).await {
            Ok(Ok(story)) => story,
            Ok(Err(error)) => {
                tracing::warn!(
                    "hango.run.id" = %run,
                    error = &error as &dyn std::error::Error,
                    "what happened to a run could not be read, and is not told"
                );
                None
            }
            Err(_) => {
                tracing::warn!(
                    "hango.run.id" = %run,
                    "what happened to a run was not read in time, and is not told"
                );
                None
            }
        }
    }
}

/// What events say of a run's life.
pub(crate) fn life_of<'e>(events: impl Iterator<Item = &'e Event>) -> Vec<(Timestamp, Life)> {
    let mut holder = None;
    let mut life = Vec::new();
    for event in events {
        let attempt = event.attempt;
        match &event.kind {
            EventKind::RunStarted {
                owner,
                lease_expires_at,
            } => {
                holder = *owner;
                let claimed = Life::Claimed {
                    owner: *owner,
                    lease_expires_at: *lease_expires_at,
                    attempt,
                };
                life.push((event.at, claimed));
            }
            EventKind::RunRequeued {
                reason: RequeueReason::LeaseExpired,
            } => {
                let reclaimed = Life::Reclaimed {
                    previous_owner: holder.take(),
                    resume_turn: event.turn.saturating_sub(1),
                    attempt,
                };
                life.push((event.at, reclaimed));
            }
            _ => {}
        }
    }
    life
}

/// The end of a run that nobody held then, out of what is on record; `None` if it has not ended.
fn end_of(story: &Story, about: &Arc<RunFacts>) -> Option<RunEnd> {
    let state = &story.run.state;
    let mut life = life_of(story.life.iter());
    if let Some(started_at) = story.run.started_at {
        // What they are is a matter of the agent alone.
        let names = layers::stack(&story.agent.settings, u32::MAX);
        life.push((started_at, Life::Layers(names.names().collect())));
    }
    let memory = RunMemory::from_stored(&story.run.memory).ok();
    Some(RunEnd {
        about: Arc::clone(about),
        created_at: story.run.created_at,
        started_at: story.run.started_at,
        ended_at: state.finished_at()?,
        status: state.status(),
        error: state.error().map(|error| error.code.into()),
        stop_reason: story.run.stop_reason,
        iterations: story.run.iterations,
        inference_calls: story.run.iterations,
        tool_calls: story.tool_calls,
        attempts: story.run.attempt,
        usage: story.run.usage,
        todos: memory.and_then(|memory| TodoCounts::of(&memory.todos)),
        life,
        content: None,
    })
}

/// The turn that a claim left behind, which ended then: `None` if it had begun none.
fn left_behind(story: &Story, about: &Arc<RunFacts>, abandoned: Abandoned) -> Option<TurnEnd> {
    let Abandoned {
        attempt,
        expired_at,
        error,
    } = abandoned;
    let of_claim = story.life.iter().filter(|event| event.attempt == attempt);
    // An attempt that goes on with an answered turn begins none: it is in it from its claim.
    let begun = of_claim.rev().find(|event| {
        matches!(
            event.kind,
            EventKind::TurnStarted | EventKind::RunStarted { .. }
        )
    })?;
    Some(TurnEnd {
        about: Arc::clone(about),
        turn: begun.turn,
        attempt,
        took: Interval {
            begun: begun.at,
            ended: expired_at.max(begun.at),
        },
        error: Some(error),
        notes: Vec::new(),
    })
}

//! What is told of one execution of a run to whoever wants all there is to know of it: what has to be
//! remembered until it is over, and no more. `calls` has the calls, `end` the run's end.
//!
//! * Nothing is collected unless somebody wants it.
//! * Moments are the store's: the claim's, and what has passed since. Whatever process tells of a run tells
//!   it by one clock.
//! * A turn is told of by whoever executes it, unless he loses the run: then by the sweep that takes it.

mod calls;
mod end;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hango_domain::Timestamp;
use hango_domain::agent::AgentSnapshot;
use hango_domain::conversation::{Block, Usage};
use hango_domain::note::Note;
use hango_domain::run::{AfterTurn, Change, Run, Todo};
use hango_ports::run_store::{Claimed, Written};
use hango_ports::telemetry::{
    ErrorType, HooksRan, Interval, Life, Observation, RunFacts, TodoCounts, TurnEnd, Wants,
};
use hango_ports::{Provider, Telemetry};
use tokio::time::Instant;

use super::Shared;
pub(super) use calls::Asking;
use end::Ending;

/// The most notes of one turn that are kept.
const MAX_NOTES: usize = 128;

/// What is told of one execution.
pub(super) struct Account {
    telemetry: Arc<dyn Telemetry>,
    wants: Wants,
    about: Arc<RunFacts>,
    attempt: u32,
    /// What is needed of the run as it was claimed.
    claimed: AsClaimed,
    clock: RunClock,
    state: Mutex<State>,
}

/// What is needed of a run as it was claimed.
struct AsClaimed {
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    begun_turn: u32,
    iterations: u32,
    /// What its caller said, where somebody wants that.
    input: Vec<Block>,
}

/// The store's clock, as it was told with the claim.
struct RunClock {
    at: Timestamp,
    since: Instant,
}

/// What is remembered.
struct State {
    turn: Option<OpenTurn>,
    iterations: u32,
    /// Tries of model calls in this execution.
    asked: u32,
    /// Tool calls that were asked for in this execution.
    tool_calls: u32,
    usage: Usage,
    todos: Option<TodoCounts>,
    life: Vec<(Timestamp, Life)>,
    ending: Option<Ending>,
}

/// The turn that is being executed.
struct OpenTurn {
    turn: u32,
    begun: Timestamp,
    /// Whether anything was called in it.
    called: bool,
    /// What became of its last model call, or of a tool call that was broken off.
    error: Option<ErrorType>,
    notes: Vec<(Timestamp, Note)>,
    /// The calls that were told of.
    told: Vec<u32>,
}

impl Account {
    /// Begins with a claim; `None` if nobody wants it.
    pub(super) fn begin(shared: &Shared, claimed: &Claimed) -> Option<Arc<Self>> {
        let telemetry = Arc::clone(&shared.parts.telemetry);
        let wants = telemetry.wants();
        let agent = claimed.context.as_ref().map(|context| &context.agent).ok();
        if !wants.facts {
            return None;
        }
        let run = &claimed.run;
        let at = run.started_at.unwrap_or(run.created_at);
        let at = at.plus(claimed.elapsed);
        let life = Life::Claimed {
            owner: Some(claimed.lease.owner),
            lease_expires_at: run.lease_expires_at(),
            attempt: claimed.lease.attempt,
        };
        Some(Arc::new(Self {
            telemetry,
            wants,
            about: Arc::new(facts(shared, run, agent)),
            attempt: claimed.lease.attempt,
            clock: RunClock {
                at,
                since: Instant::now(),
            },
            state: Mutex::new(State {
                turn: Some(OpenTurn::new(run.progress.begun_turn, at)),
                iterations: run.iterations,
                asked: 0,
                tool_calls: 0,
                usage: run.usage,
                todos: None,
                life: vec![(at, life)],
                ending: None,
            }),
            claimed: AsClaimed {
                created_at: run.created_at,
                started_at: run.started_at,
                begun_turn: run.progress.begun_turn,
                iterations: run.iterations,
                input: if wants.content {
                    run.input.clone()
                } else {
                    Vec::new()
                },
            },
        }))
    }

    /// The layers that the run has, and its plan so far.
    pub(super) fn layers(&self, names: Vec<&'static str>, todos: &[Todo]) {
        self.lived(Life::Layers(names));
        self.lock().todos = TodoCounts::of(todos);
    }

    /// The layers prepared the run, each until its moment.
    pub(super) fn prepared(&self, begun: Timestamp, until: Vec<(&'static str, Timestamp)>) {
        let mut last = begun;
        let hooks = until.into_iter().map(|(layer, ended)| {
            let begun = std::mem::replace(&mut last, ended);
            (layer, Interval { begun, ended })
        });
        let hooks = hooks.collect();
        self.telemetry
            .observe(Observation::HooksRan(Box::new(HooksRan {
                about: Arc::clone(&self.about),
                took: Interval { begun, ended: last },
                hooks,
            })));
    }

    /// A layer reported something.
    pub(super) fn noted(&self, note: Note) {
        let now = self.now();
        match note {
            Note::StateMissing { .. } => self.lived(Life::Noted(note)),
            note => {
                if let Some(turn) = &mut self.lock().turn
                    && turn.notes.len() < MAX_NOTES
                {
                    turn.notes.push((now, note));
                }
            }
        }
    }

    /// What a write will be remembered for, once it is made.
    pub(super) fn saving(&self, change: &Change) -> Saving {
        Saving {
            calls: match change {
                Change::Answer(answer) => u32::try_from(answer.calls.len()).unwrap_or(u32::MAX),
                _ => 0,
            },
            usage: match change {
                Change::Answer(answer) => answer.message.usage.unwrap_or_default(),
                Change::Finish(end) => end.usage,
                _ => Usage::default(),
            },
            completes: match change {
                Change::CompleteTurn(boundary) => Some(boundary.turn),
                Change::Finish(end) => end.turn,
                _ => None,
            },
            begins: match change {
                Change::CompleteTurn(boundary) if boundary.then == AfterTurn::GoOn => {
                    Some(boundary.turn + 1)
                }
                _ => None,
            },
            todos: match change {
                Change::CompleteTurn(boundary) => boundary.todos.clone(),
                Change::Finish(end) => end.todos.clone(),
                _ => None,
            },
            ending: Ending::of(change, self.wants.content),
            settled: self.settled(change),
        }
    }

    /// A write was made.
    pub(super) fn saved(&self, saving: Saving, written: &Written) {
        let now = self.now();
        for facts in saving.settled {
            self.telemetry
                .observe(Observation::ToolSettled(Box::new(facts)));
        }
        let mut state = self.lock();
        state.usage += saving.usage;
        state.tool_calls = state.tool_calls.saturating_add(saving.calls);
        if let Some(todos) = saving.todos {
            state.todos = TodoCounts::of(&todos);
        }
        if let Some(ending) = saving.ending {
            let end = written
                .events
                .iter()
                .rfind(|event| event.kind.is_terminal());
            state.ending = Some(ending.told(end, now));
        }
        let completed = saving.completes.is_some();
        state.iterations += u32::from(completed);
        let ended = completed.then(|| state.turn.take()).flatten();
        if let Some(turn) = saving.begins {
            state.turn = Some(OpenTurn::new(turn, now));
        }
        drop(state);
        if let Some(turn) = ended {
            self.turn_ended(turn, now, None);
        }
    }

    /// The execution is over and the run went back to the queue.
    pub(super) fn given_back(&self) {
        self.break_off_turn(self.now(), |called| called);
    }

    /// Tells of the turn that is not completed, if anything happened in it.
    fn break_off_turn(
        &self,
        now: Timestamp,
        error: impl FnOnce(Option<ErrorType>) -> Option<ErrorType>,
    ) {
        let turn = self.lock().turn.take().filter(|turn| turn.called);
        if let Some(mut turn) = turn {
            let error = error(turn.error.take());
            self.turn_ended(turn, now, error);
        }
    }

    fn turn_ended(&self, turn: OpenTurn, ended: Timestamp, error: Option<ErrorType>) {
        let end = TurnEnd {
            about: Arc::clone(&self.about),
            turn: turn.turn,
            attempt: self.attempt,
            took: Interval {
                begun: turn.begun,
                ended,
            },
            error,
            notes: turn.notes,
        };
        self.telemetry
            .observe(Observation::TurnEnded(Box::new(end)));
    }

    fn lived(&self, life: Life) {
        let now = self.now();
        self.lock().life.push((now, life));
    }

    /// The present moment by the store's clock, about.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.at.plus(self.clock.since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenTurn {
    fn new(turn: u32, begun: Timestamp) -> Self {
        Self {
            turn,
            begun,
            called: false,
            error: None,
            notes: Vec::new(),
            told: Vec::new(),
        }
    }
}

/// What a write is remembered for.
pub(super) struct Saving {
    calls: u32,
    usage: Usage,
    completes: Option<u32>,
    begins: Option<u32>,
    /// What it did to the plan.
    todos: Option<Vec<Todo>>,
    ending: Option<Ending>,
    settled: Vec<hango_ports::telemetry::ToolFacts>,
}

/// What everything that is told of a run says of it. An agent that cannot be read is named by its id.
fn facts(shared: &Shared, run: &Run, agent: Option<&AgentSnapshot>) -> RunFacts {
    let kind = |agent: &AgentSnapshot| {
        let provider = shared.parts.providers.get(&agent.settings.provider)?;
        Some(Provider::kind(&**provider).to_owned())
    };
    RunFacts::new(run, agent, agent.and_then(kind))
}

//! A driver and a store that play a script, and are stopped wherever a test wants.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{AgentLoop, Input, LoopLimits, Step, Stop};
use super::bench::{AMPLE, FINE, agent, classes, tokens};
use super::script::{Outcome, Script, result_of};
use super::store::Store;
use crate::access::Standing;
use crate::conversation::{Block, validate};
use crate::journal::CallState;
use crate::run::fixtures::take_back;
use crate::run::{Change, RequeueReason};
use crate::tool::Idempotency;

/// No run of a script takes so many steps: the loop terminates.
const MOST_STEPS: u32 = 2_000;

/// Something that breaks in, once, so many steps after the one before.
#[derive(Clone, Debug)]
pub(super) struct Interruption {
    pub(super) after: u32,
    pub(super) what: Break,
}

#[derive(Clone, Debug)]
pub(super) enum Break {
    /// The process dies, before what it was about to do or write.
    Crash,
    /// The process shuts down and waits for the boundary.
    Drain,
    /// The driver breaks off for this reason.
    Stop(Stop),
    /// From now on every write tells this.
    Standing(Standing),
    /// The run's user asks for its end.
    Cancel,
}

pub(super) struct Player {
    script: Script,
    limits: LoopLimits,
    /// Which of the calls that are executed ends next.
    pick: usize,
    pub(super) store: Store,
    standing: Standing,
    interruptions: Vec<Interruption>,
    steps: u32,
    since: u32,
    /// How often each call was really executed, by turn and position.
    executions: BTreeMap<(u32, u32), u32>,
    /// How often an attempt was broken off amid whatever it did.
    broken_off: u32,
}

impl Player {
    pub(super) fn new(script: &Script, limits: LoopLimits, pick: usize) -> Self {
        Self {
            script: script.clone(),
            limits,
            pick,
            store: Store::new(),
            standing: FINE,
            interruptions: Vec::new(),
            steps: 0,
            since: 0,
            executions: BTreeMap::new(),
            broken_off: 0,
        }
    }

    /// Plays until the run has ended, with these interruptions on the way.
    pub(super) fn play(mut self, interruptions: &[Interruption]) -> Result<Self, TestCaseError> {
        self.interruptions = interruptions.iter().rev().cloned().collect();
        while !self.store.has_ended() {
            self.store = self.store.clone().claimed();
            self.attempt()?;
            // A process that died left the run to the sweep.
            if self.store.run.lease().is_some() {
                self.store.make(take_back());
            }
            self.check_between_attempts()?;
        }
        Ok(self)
    }

    /// One attempt, until the loop is done or the process dies.
    fn attempt(&mut self) -> Result<(), TestCaseError> {
        let mut agent = agent(&self.store, self.limits);
        let mut executing: Vec<(u32, String)> = Vec::new();
        let mut input = Input::Begin {
            standing: self.standing(),
            append: None,
        };
        loop {
            self.steps += 1;
            prop_assert!(self.steps < MOST_STEPS, "the loop does not end");
            let step = agent.advance(input);
            let step = step.map_err(|error| TestCaseError::fail(error.to_string()))?;
            let stoppable = !matches!(step, Step::Save(_) | Step::Done);
            match self.interruption() {
                Some(Break::Crash) => {
                    self.broken_off += 1;
                    return Ok(());
                }
                Some(Break::Drain) => agent.give_back_at_boundary(RequeueReason::Drain),
                Some(Break::Stop(reason)) if stoppable => {
                    self.broken_off += 1;
                    input = stopped(reason);
                    continue;
                }
                // A write is never broken off.
                Some(what @ Break::Stop(_)) => {
                    self.interruptions.push(Interruption { after: 0, what });
                }
                Some(Break::Standing(standing)) => self.standing = standing,
                Some(Break::Cancel) if !self.store.has_ended() => {
                    self.store.make(Change::RequestCancel { closing: None });
                }
                Some(Break::Cancel) | None => {}
            }
            input = match step {
                Step::Done => return Ok(()),
                Step::Save(change) => {
                    self.store.make(change);
                    Input::Saved {
                        standing: self.standing(),
                    }
                }
                Step::CallModel => self.call_model(&agent)?,
                Step::Wait(_) => Input::Waited,
                Step::Execute(calls) => {
                    for call in calls {
                        self.begin(call.turn, call.position)?;
                        executing.push((call.position, call.tool_use_id));
                    }
                    prop_assert!(!executing.is_empty(), "nothing executes");
                    prop_assert!(executing.len() <= self.limits.tool_concurrency);
                    let (position, id) = executing.remove(self.pick % executing.len());
                    Input::ToolReturned {
                        position,
                        result: result_of(&id),
                        duration_ms: 3,
                    }
                }
            };
        }
    }

    /// What breaks in now.
    fn interruption(&mut self) -> Option<Break> {
        self.since += 1;
        let due = |next: &mut Interruption| next.after < self.since;
        let next = self.interruptions.pop_if(due)?;
        self.since = 0;
        Some(next.what)
    }

    fn standing(&self) -> Standing {
        Standing {
            cancel_requested: self.store.run.cancel_requested_at.is_some(),
            ..self.standing
        }
    }

    fn call_model(&self, agent: &AgentLoop) -> Result<Input, TestCaseError> {
        prop_assert_eq!(validate(&agent.messages()), Ok(()));
        prop_assert_eq!(agent.turn(), self.store.run.progress.begun_turn);
        let left = AMPLE;
        Ok(match self.script.outcome(&self.store.run.progress) {
            Outcome::Reply(reply) => Input::Replied {
                reply: Ok(reply),
                left,
            },
            Outcome::Failure(failure) => Input::Replied {
                reply: Err(failure),
                left,
            },
            Outcome::Blocked(wait) => Input::Blocked { wait, left },
        })
    }

    /// A call's execution begins: the journal has to know it, and nothing may be on record of it.
    fn begin(&mut self, turn: u32, position: u32) -> Result<(), TestCaseError> {
        let executions = self.executions.entry((turn, position)).or_default();
        *executions += 1;
        let call = self.store.call(turn, position);
        prop_assert_eq!(call.state, CallState::Started);
        prop_assert!(*executions <= call.executions);
        prop_assert!(call.invalid_input.is_none());
        Ok(())
    }

    fn check_between_attempts(&self) -> Result<(), TestCaseError> {
        for call in &self.store.journal {
            let place = (call.turn, call.position);
            let executions = self.executions.get(&place).copied().unwrap_or_default();
            let repeatable = match classes().get(&call.name) {
                Some(Idempotency::Safe | Idempotency::Keyed) => self.broken_off,
                Some(Idempotency::Unsafe) | None => 0,
            };
            let never = call.invalid_input.is_some() || call.state == CallState::Pending;
            let most = if never { 0 } else { 1 + repeatable };
            prop_assert!(executions <= most, "{executions} executions of {call:?}");
        }
        Ok(())
    }

    /// The conversation with every outcome that nobody knows replaced by the one that it would have
    /// been. Only a call that may not be repeated is ever in doubt.
    pub(super) fn said_without_doubt(&self) -> Result<Vec<String>, TestCaseError> {
        let mut clear = self.store.clone();
        let doubtful = self
            .store
            .journal
            .iter()
            .filter(|call| call.state == CallState::InDoubt);
        for call in doubtful {
            let class = classes().get(&call.name).copied();
            prop_assert!(
                matches!(class, None | Some(Idempotency::Unsafe)),
                "{call:?}"
            );
            for block in clear.messages.iter_mut().flat_map(|it| &mut it.content) {
                if let Block::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                    ..
                } = block
                    && *tool_use_id == call.tool_use_id
                {
                    let result = result_of(tool_use_id);
                    (*content, *is_error) = (result.for_llm, result.is_error);
                }
            }
        }
        Ok(clear.said())
    }
}

/// What was paid for a call that a drain broke off is not told: a run that is given back keeps no such
/// account.
fn stopped(reason: Stop) -> Input {
    let usage = tokens(if reason == Stop::Abort { 0 } else { 2 });
    Input::Stopped {
        reason,
        partial: vec![Block::text("so far")],
        usage,
    }
}

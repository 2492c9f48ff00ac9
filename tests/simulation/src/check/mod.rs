//! What must be true of every history, judged from the log and from what the store holds at the end. The
//! rules are said here once more, in other words than the engine's and the domain's.
//!
//! | file | rules |
//! | --- | --- |
//! | `claims` | who may claim, renew, write and take back, and when |
//! | `calls` | what may be asked of models and tools, and when |
//! | `record` | what is on record when a run has ended |

mod calls;
mod claims;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hango_domain::run::{Lease, RunStatus};
use hango_domain::{RunId, SessionId, TenantId};

use crate::log::{Call, Effect, Entry, Process, What};
use crate::plan::Plan;
use crate::scenario::Scenario;
use crate::world::World;
use calls::Calls;
use claims::Claims;

/// Something that is not as it must be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// When it was seen, in virtual time.
    pub at: Duration,
    /// What is wrong.
    pub what: String,
}

/// What is known of one run, as far as the log was read.
pub(crate) struct Line {
    tenant: TenantId,
    session: SessionId,
    session_no: u64,
    holder: Option<Holder>,
    attempt: u32,
    /// Turns completed.
    completed: u32,
    /// The last turn whose answer is on record.
    answered: u32,
    /// How often each call of the answered turn was begun on record, and whether its result is there.
    calls: BTreeMap<(u32, u32), Journal>,
    available: Duration,
    ended: Option<RunStatus>,
    /// When its end was asked for while it was running.
    cancel: Option<Duration>,
}

#[derive(Clone, Copy, Default)]
struct Journal {
    begun: u32,
    settled: bool,
}

/// The claim in force.
#[derive(Clone, Copy)]
struct Holder {
    lease: Lease,
    /// Until when, by the store's clock.
    until: Duration,
}

/// The history of a simulation, being read.
pub(crate) struct History {
    plan: Plan,
    at: Duration,
    /// How far the store's clock is ahead of virtual time.
    ahead: Duration,
    lines: BTreeMap<RunId, Line>,
    processes: BTreeSet<Process>,
    suspended: Vec<TenantId>,
    calm: Option<Duration>,
    /// Who asked what.
    asked: BTreeMap<Call, (Process, crate::log::Asked)>,
    /// What each answer would have said.
    done: BTreeMap<Call, Effect>,
    claims: Claims,
    calls: Calls,
    wrong: Vec<Violation>,
}

/// Everything that is wrong with a simulation.
pub(crate) async fn check(world: &World, scenario: &Scenario) -> Vec<Violation> {
    let mut history = History::new(world.plan);
    for entry in world.log.entries().iter() {
        history.read(entry);
    }
    history.calls_overlap();
    history.record(world, scenario).await;
    for group in world.executor.panicked() {
        history.wrong(format!("a task of process {} panicked", group.0));
    }
    history.wrong
}

impl History {
    fn new(plan: Plan) -> Self {
        Self {
            plan,
            at: Duration::ZERO,
            ahead: Duration::ZERO,
            lines: BTreeMap::new(),
            processes: BTreeSet::new(),
            suspended: Vec::new(),
            calm: None,
            asked: BTreeMap::new(),
            done: BTreeMap::new(),
            claims: Claims::default(),
            calls: Calls::default(),
            wrong: Vec::new(),
        }
    }

    fn wrong(&mut self, what: impl Into<String>) {
        self.wrong.push(Violation {
            at: self.at,
            what: what.into(),
        });
    }

    fn unless(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.wrong(what());
        }
    }

    /// What the store's clock says.
    fn store_now(&self) -> Duration {
        self.at + self.ahead
    }

    fn read(&mut self, entry: &Entry) {
        self.at = entry.at;
        match &entry.what {
            What::Starts(process) => {
                let new = self.processes.insert(*process);
                self.unless(new, || format!("process {process} starts once more"));
            }
            What::StormBegins | What::StormEnds => {}
            What::CutOff(process) | What::Reconnected(process) => self.disturbed(*process),
            What::Dies(process) => self.dies(*process),
            What::HeldUp { process, briefly } => self.held_up(*process, *briefly),
            What::GoesOn { process, briefly } => self.goes_on(*process, *briefly),
            What::Drains(process) => self.drains(*process),
            What::Drained(process) => self.drained(*process),
            What::ClockSteps(by) => self.clock_steps(*by),
            What::Calm => self.calm = Some(entry.at),
            What::Tenant(tenant, active) => {
                self.suspended.retain(|it| it != tenant);
                if !active {
                    self.suspended.push(*tenant);
                }
            }
            What::Asks {
                call,
                process,
                asked,
            } => {
                self.asked.insert(*call, (*process, *asked));
                self.asks(*process, *asked);
            }
            What::Done { call, effect } => {
                self.done.insert(*call, effect.clone());
                self.effect(*call, effect);
            }
            What::Told { call, known } => self.told(*call, *known),
            What::Accepted(run) => {
                let there = self.lines.contains_key(run);
                self.unless(there, || format!("{run} was accepted and is not there"));
            }
            What::CancelAccepted(run) => {
                let asked = self.lines.get(run).is_some_and(|line| {
                    line.cancel.is_some() || line.ended == Some(RunStatus::Cancelled)
                });
                self.unless(asked, || format!("the cancel of {run} is not on record"));
            }
            What::Model {
                call,
                process,
                run,
                turn,
                attempt,
                illegal,
            } => {
                if let Some(illegal) = illegal {
                    self.wrong(format!("an illegal request of {run}: {illegal}"));
                }
                self.model(*call, *process, *run, *turn, *attempt);
            }
            What::Cost { run, tokens } => self.cost(*run, *tokens),
            What::Tool {
                call,
                process,
                run,
                key,
                class,
            } => self.tool(*call, *process, *run, key, *class),
            What::ModelEnds(call) | What::ToolEnds(call) => self.call_ends(*call),
            What::Wrong(what) => self.wrong(what.clone()),
        }
    }
}

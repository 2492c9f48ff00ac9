//! What may be asked of models and tools.
//!
//! * Nothing is begun but under a claim that its process may believe in, nor is anything going on under a
//!   claim when the next one is made, or after its process was told that the claim is lost. A process that
//!   is held up for longer than a lease's margin is excused until it goes on.
//! * An answer that is on record, and a turn that is complete, are not asked for again.
//! * A tool is executed only as its journal says: begun on record, without a result, and one that is unsafe
//!   once for ever.
//! * After a run's end was asked for, nothing is begun for longer than a lease lasts; in the calm, for
//!   longer than a heartbeat and a second.

use std::collections::BTreeMap;
use std::time::Duration;

use hango_domain::RunId;
use hango_domain::run::Lease;
use hango_domain::tool::Idempotency;

use super::History;
use super::claims::process_of;
use crate::log::{Call, Process};
use crate::plan::{BRIEF_MS, HEARTBEAT, LEASE};

/// What is still allowed for things to end that have to.
const AT_ONCE: Duration = Duration::from_millis(2 * BRIEF_MS as u64 + 10);

/// How long the answer of a last write is waited for; calls beside it go on.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// What is kept for these rules.
#[derive(Default)]
pub(super) struct Calls {
    all: BTreeMap<Call, OneCall>,
    claims: Vec<(Lease, Duration)>,
    /// From when until when each process was held up for long.
    held_up: Vec<(Process, Duration, Option<Duration>)>,
    executions: BTreeMap<String, u32>,
    pub(super) cost: BTreeMap<RunId, u64>,
}

/// A model call or an execution of a tool.
#[derive(Clone, Copy)]
struct OneCall {
    process: Process,
    run: RunId,
    attempt: u32,
    is_tool: bool,
    from: Duration,
    to: Option<Duration>,
}

impl Calls {
    pub(super) fn held_up(&mut self, process: Process, at: Duration) {
        self.held_up.push((process, at, None));
    }

    pub(super) fn goes_on(&mut self, process: Process, at: Duration) {
        let mut held_up = self.held_up.iter_mut().rev();
        if let Some(last) = held_up.find(|(it, _, to)| *it == process && to.is_none()) {
            last.2 = Some(at);
        }
    }

    pub(super) fn claimed(&mut self, lease: Lease, at: Duration) {
        self.claims.push((lease, at));
    }

    /// When something that had to end by `by` had to end really, its process having been held up.
    fn excused(&self, process: Process, by: Duration) -> Duration {
        let mut held_up = self.held_up.iter().filter(|(it, ..)| *it == process);
        let held_up =
            held_up.find(|(_, from, to)| *from <= by && to.is_none_or(|to| to + AT_ONCE >= by));
        match held_up {
            Some((_, _, to)) => to.map_or(Duration::MAX, |to| to + AT_ONCE),
            None => by,
        }
    }
}

impl History {
    pub(super) fn model(
        &mut self,
        call: Call,
        process: Process,
        run: RunId,
        turn: u32,
        attempt: u32,
    ) {
        self.begins(call, process, run, attempt, false);
        let Some(line) = self.lines.get(&run) else {
            return;
        };
        let (completed, answered, newest) = (line.completed, line.answered, line.attempt);
        if attempt == newest || self.plan.steps == 0 {
            let new = turn == completed + 1 && answered <= completed;
            self.unless(new, || {
                format!("{run} asks for turn {turn}: {completed} complete, {answered} answered")
            });
        }
    }

    pub(super) fn cost(&mut self, run: RunId, tokens: u64) {
        *self.calls.cost.entry(run).or_default() += tokens;
    }

    pub(super) fn tool(
        &mut self,
        call: Call,
        process: Process,
        run: RunId,
        key: &str,
        class: Idempotency,
    ) {
        let of_process = |(it, of, _): &&(Process, RunId, u32)| (*it, *of) == (process, run);
        let attempts = self.claims.believes.keys().filter(of_process);
        let attempt = attempts.map(|(_, _, attempt)| *attempt).max().unwrap_or(0);
        self.begins(call, process, run, attempt, true);
        let executions = self.calls.executions.entry(key.to_owned()).or_default();
        *executions += 1;
        let executions = *executions;
        let mut parts = key.rsplit('-').filter_map(|part| part.parse().ok());
        let (Some(position), Some(turn)) = (parts.next(), parts.next()) else {
            return self.wrong(format!("{key} is no key"));
        };
        let journal = self.journal(run, turn, position);
        // Where the store's clock stepped, an attempt may not know that there is another one.
        if self.plan.steps == 0 {
            let open = journal.begun > 0 && !journal.settled;
            self.unless(open, || {
                format!("{key} is executed and is not begun on record")
            });
            let counted = executions <= journal.begun;
            self.unless(counted, || {
                format!("{key} is executed more often than begun")
            });
        }
        let once = class != Idempotency::Unsafe || executions == 1;
        self.unless(once, || format!("{key} is unsafe and executed again"));
        let open = self.calls.all.values().filter(|it| {
            it.is_tool
                && it.to.is_none()
                && (it.process, it.run, it.attempt) == (process, run, attempt)
        });
        let within = open.count() <= self.plan.engine.tool_concurrency;
        self.unless(within, || format!("{run} executes too many calls at once"));
    }

    /// What holds for both.
    fn begins(&mut self, call: Call, process: Process, run: RunId, attempt: u32, is_tool: bool) {
        let at = self.at;
        let one = OneCall {
            process,
            run,
            attempt,
            is_tool,
            from: at,
            to: None,
        };
        self.calls.all.insert(call, one);
        let key = (process, run, attempt);
        let believes = self.claims.believes.get(&key).copied();
        let believed = believes.is_some_and(|until| at < until);
        self.unless(believed, || {
            format!("attempt {attempt} of {run} begins something when its lease has run out")
        });
        let told = self.claims.told_lost.get(&key).copied();
        self.unless(told.is_none_or(|told| at <= told), || {
            format!("attempt {attempt} of {run} begins something and knows that it is lost")
        });
        if self.plan.steps == 0 {
            let holds = self
                .holder(run)
                .is_some_and(|it| process_of(it.lease) == process && it.lease.attempt == attempt);
            self.unless(holds, || {
                format!("attempt {attempt} of {run} begins something unheld")
            });
        }
        let cancel = self.lines.get(&run).and_then(|line| line.cancel);
        if let Some(cancel) = cancel {
            let calm = self.calm.is_some_and(|calm| cancel > calm + LEASE);
            let within = if calm {
                HEARTBEAT + Duration::from_secs(1)
            } else {
                LEASE
            };
            self.unless(at <= cancel + within, || {
                format!("{run} begins something long after its end was asked for")
            });
        }
    }

    pub(super) fn call_ends(&mut self, call: Call) {
        if let Some(one) = self.calls.all.get_mut(&call) {
            one.to.get_or_insert(self.at);
        }
    }

    pub(super) fn calls_of_the_dead(&mut self, process: Process) {
        for call in self.calls.all.values_mut() {
            if call.process == process {
                call.to.get_or_insert(self.at);
            }
        }
    }

    /// Nothing goes on under a claim that is over.
    pub(super) fn calls_overlap(&mut self) {
        let mut wrong = Vec::new();
        for call in self.calls.all.values() {
            let to = call.to.unwrap_or(Duration::MAX);
            let excused = |by| self.calls.excused(call.process, by);
            let next = self.calls.claims.iter().find(|(lease, at)| {
                lease.run == call.run && lease.attempt > call.attempt && *at >= call.from
            });
            if let Some((lease, at)) = next
                && self.plan.steps == 0
                && to > excused(*at)
            {
                let what = format!("attempt {} goes on beside {lease:?}", call.attempt);
                wrong.push((*at, what));
            }
            let key = (call.process, call.run, call.attempt);
            if let Some(told) = self.claims.told_lost.get(&key)
                && to > excused(*told + LAST_ANSWER + AT_ONCE)
                && call.from <= *told
            {
                wrong.push((
                    *told,
                    format!("{key:?} was told that it is lost and goes on"),
                ));
            }
            let cancel = self.lines.get(&call.run).and_then(|line| line.cancel);
            let orphaned = self
                .claims
                .orphaned
                .iter()
                .find(|(lease, _)| (process_of(**lease), lease.run, lease.attempt) == key);
            if let Some((lease, at)) = orphaned
                && to > excused(*at + AT_ONCE)
            {
                wrong.push((*at, format!("{lease:?} is called an orphan and goes on")));
            }
            // While a write cannot be made, calls beside it go on.
            if let Some(cancel) = cancel
                && !self.plan.has_store_trouble()
                && call.from <= cancel + LEASE
                && to > excused(cancel + LEASE + AT_ONCE)
            {
                let what = format!("{} goes on long after its end was asked for", call.run);
                wrong.push((cancel, what));
            }
        }
        for (at, what) in wrong {
            self.at = at;
            self.wrong(what);
        }
    }
}

//! Who may claim, renew, write and take back.
//!
//! * A run is claimed when nobody holds it, no run of its session is running, no earlier one is open, its
//!   time has come, and its tenant works and is below its cap.
//! * Nothing is written but under the claim in force, and the holder's writes are not refused.
//! * A run is taken back from a holder only when his lease has run out.
//! * A run that is executed is not given back as an orphan.
//! * A process that has drained undisturbed holds nothing.
//! * What has ended does not change.

use std::collections::BTreeMap;
use std::time::Duration;

use hango_domain::RunId;
use hango_domain::run::{ChangeKind, Lease, RequeueReason, RunStatus};
use hango_ports::run_store::Held;

use super::{History, Holder, Journal, Line};
use crate::log::{Asked, Call, Effect, Process, Wrote};
use crate::plan::{LATE_WRITES, LEASE};

/// What is kept for these rules.
#[derive(Default)]
pub(super) struct Claims {
    /// How often each run was taken back since it completed a turn.
    stalls: BTreeMap<RunId, u32>,
    /// Claims that were asked to be given back as orphans, and when.
    pub(super) orphaned: BTreeMap<Lease, Duration>,
    /// When something went wrong for each process last.
    disturbed: BTreeMap<Process, Duration>,
    /// Since when each process drains.
    drains: BTreeMap<Process, Duration>,
    /// When a process was told that a claim is lost.
    pub(super) told_lost: BTreeMap<(Process, RunId, u32), Duration>,
    /// Until when a process may believe in a claim: as long as the store, counted without its steps.
    pub(super) believes: BTreeMap<(Process, RunId, u32), Duration>,
}

/// The process of an owner.
pub(super) fn process_of(lease: Lease) -> Process {
    Process::try_from(lease.owner.0.as_u128()).unwrap_or(0)
}

impl History {
    pub(super) fn dies(&mut self, process: Process) {
        self.claims.drains.remove(&process);
        self.calls_of_the_dead(process);
    }

    pub(super) fn held_up(&mut self, process: Process, briefly: bool) {
        if !briefly {
            self.disturbed(process);
            self.calls.held_up(process, self.at);
        }
    }

    pub(super) fn goes_on(&mut self, process: Process, briefly: bool) {
        if !briefly {
            self.disturbed(process);
            self.calls.goes_on(process, self.at);
        }
    }

    pub(super) fn drains(&mut self, process: Process) {
        self.claims.drains.insert(process, self.at);
    }

    /// A claim whose answer was lost may go unnoticed for as long as a lease lasts.
    pub(super) fn drained(&mut self, process: Process) {
        let since = self.claims.drains.remove(&process).unwrap_or(self.at);
        let disturbed = self.claims.disturbed.get(&process);
        let undisturbed = disturbed.is_none_or(|at| *at + LEASE < since);
        let undisturbed = undisturbed && !self.plan.has_store_trouble();
        let holds = self.lines.iter().find_map(|(run, line)| {
            let holder = line.holder?;
            (process_of(holder.lease) == process).then_some(*run)
        });
        if let Some(run) = holds.filter(|_| undisturbed) {
            self.wrong(format!("process {process} drained and holds {run}"));
        }
    }

    /// The store's clock stepped forward: leases run out, whoever holds them.
    pub(super) fn clock_steps(&mut self, by: Duration) {
        self.ahead += by;
        for process in self.processes.clone() {
            self.disturbed(process);
        }
    }

    pub(super) fn disturbed(&mut self, process: Process) {
        self.claims.disturbed.insert(process, self.at);
    }

    pub(super) fn asks(&mut self, process: Process, asked: Asked) {
        let Asked::Write(kind, lease) = asked else {
            return;
        };
        let orphaned = self.claims.orphaned.contains_key(&lease);
        if orphaned && kind != ChangeKind::GiveBack {
            self.wrong(format!(
                "{lease:?} was given up as an orphan and is executed"
            ));
        }
        let right = process_of(lease) == process;
        self.unless(right, || format!("process {process} presents {lease:?}"));
    }

    pub(super) fn told(&mut self, call: Call, known: bool) {
        let Some((process, asked)) = self.asked.get(&call).copied() else {
            return;
        };
        if !known {
            self.disturbed(process);
        }
        if !known || asked != Asked::Renew {
            return;
        }
        if let Some(Effect::Renewed { lost, .. }) = self.done.get(&call).cloned() {
            for Held { run, attempt } in lost {
                let key = (process, run, attempt);
                self.claims.told_lost.entry(key).or_insert(self.at);
            }
        }
    }

    pub(super) fn effect(&mut self, call: Call, effect: &Effect) {
        match effect {
            Effect::Accepted {
                run,
                tenant,
                session,
                session_no,
                cancelled,
                interrupted,
            } => {
                let line = Line {
                    tenant: *tenant,
                    session: *session,
                    session_no: *session_no,
                    holder: None,
                    attempt: 0,
                    completed: 0,
                    answered: 0,
                    calls: BTreeMap::new(),
                    available: Duration::ZERO,
                    ended: None,
                    cancel: None,
                };
                self.lines.entry(*run).or_insert(line);
                for run in cancelled {
                    self.ends(*run, RunStatus::Cancelled);
                }
                for run in interrupted {
                    self.asked_to_end(*run);
                }
            }
            Effect::Cancel { run, status } if status.is_terminal() => self.ends(*run, *status),
            Effect::Cancel { run, .. } => self.asked_to_end(*run),
            Effect::Claimed(leases) => {
                for lease in leases {
                    self.claimed(*lease);
                }
            }
            Effect::Renewed {
                renewed,
                lost,
                orphans,
            } => {
                for lease in renewed {
                    self.renewed(*lease);
                }
                for lease in orphans {
                    let in_force = self.holder(lease.run).is_some_and(|it| it.lease == *lease);
                    self.unless(in_force, || {
                        format!("{lease:?} is an orphan and not in force")
                    });
                }
                for held in lost {
                    self.lost(call, *held);
                }
            }
            Effect::Wrote { wrote, status } => self.wrote(wrote, *status),
            Effect::Refused(why) => self.refused(call, why),
            Effect::Reclaimed(taken) => {
                for (lease, status) in taken {
                    self.reclaimed(*lease, *status);
                }
            }
            Effect::Repeated | Effect::Nothing => {}
        }
    }

    fn claimed(&mut self, lease: Lease) {
        let now = self.store_now();
        let Some(line) = self.lines.get(&lease.run) else {
            return self.wrong(format!("{lease:?} claims what was never accepted"));
        };
        let (tenant, session, number) = (line.tenant, line.session, line.session_no);
        let free = line.holder.is_none() && line.ended.is_none();
        let next = lease.attempt == line.attempt + 1;
        let due = line.available <= now;
        let others = || self.lines.values().filter(|other| other.session == session);
        let alone = others().all(|other| other.holder.is_none());
        let first = others().all(|other| other.session_no >= number || other.ended.is_some());
        let works = !self.suspended.contains(&tenant);
        let running = self.lines.values();
        let running = running.filter(|it| it.tenant == tenant && it.holder.is_some());
        let cap = self.plan.engine.running_per_tenant as usize;
        let below = cap == 0 || running.count() < cap;
        for (right, what) in [
            (free, "takes a run that is held or has ended"),
            (next, "is not the next attempt"),
            (due, "comes before its time"),
            (alone, "runs beside another run of its session"),
            (first, "overtakes an earlier run of its session"),
            (works, "is of a tenant that is suspended"),
            (below, "is one more than its tenant may have"),
        ] {
            self.unless(right, || format!("the claim {lease:?} {what}"));
        }
        let key = (process_of(lease), lease.run, lease.attempt);
        self.claims.believes.insert(key, self.at + LEASE);
        if let Some(line) = self.lines.get_mut(&lease.run) {
            line.attempt = lease.attempt;
            line.holder = Some(Holder {
                lease,
                until: now + LEASE,
            });
        }
        self.calls.claimed(lease, self.at);
    }

    fn renewed(&mut self, lease: Lease) {
        let now = self.store_now();
        let holder = self.holder(lease.run);
        let right = holder.is_some_and(|it| it.lease == lease && it.until > now);
        self.unless(right, || {
            format!("{lease:?} was renewed and is not in force")
        });
        let key = (process_of(lease), lease.run, lease.attempt);
        self.claims.believes.insert(key, self.at + LEASE);
        if let Some(holder) = self.line_mut(lease.run).and_then(|it| it.holder.as_mut()) {
            holder.until = now + LEASE;
        }
    }

    fn lost(&mut self, call: Call, held: Held) {
        let now = self.store_now();
        let process = self.asked.get(&call).map(|(process, _)| *process);
        let in_force = self.holder(held.run).is_some_and(|it| {
            Some(process_of(it.lease)) == process
                && it.lease.attempt == held.attempt
                && it.until > now
        });
        self.unless(!in_force, || {
            format!("{held:?} is in force and called lost")
        });
    }

    fn wrote(&mut self, wrote: &Wrote, status: RunStatus) {
        let lease = wrote.lease;
        let in_force = self.holder(lease.run).is_some_and(|it| it.lease == lease);
        self.unless(in_force, || format!("{wrote:?} was made without a claim"));
        self.journals(wrote);
        if let Some((reason, delay)) = wrote.back {
            if reason == RequeueReason::Orphaned {
                self.claims.orphaned.insert(lease, self.at);
                let quiet = self.plan.is_quiet();
                self.unless(!quiet, || {
                    format!("{lease:?} is called an orphan without a fault")
                });
            }
            let available = self.store_now() + delay;
            if let Some(line) = self.line_mut(lease.run) {
                line.available = available;
            }
        }
        match status {
            RunStatus::Running => {}
            RunStatus::Queued => self.goes_back(lease.run),
            RunStatus::Succeeded | RunStatus::Failed | RunStatus::Cancelled => {
                self.ends(lease.run, status);
            }
        }
    }

    /// What the write says about turns and calls.
    fn journals(&mut self, wrote: &Wrote) {
        let mut wrong = Vec::new();
        let Some(line) = self.lines.get_mut(&wrote.lease.run) else {
            return;
        };
        let turn = wrote.turn.unwrap_or(line.answered);
        if wrote.turn.is_some_and(|turn| turn != line.completed + 1) {
            wrong.push(format!("{wrote:?} is not of turn {}", line.completed + 1));
        }
        for position in &wrote.starts {
            let call = line.calls.entry((turn, *position)).or_default();
            if call.settled {
                wrong.push(format!("{wrote:?} begins a call that has its result"));
            }
            call.begun += 1;
        }
        for position in &wrote.settles {
            let call = line.calls.entry((turn, *position)).or_default();
            if std::mem::replace(&mut call.settled, true) {
                wrong.push(format!("{wrote:?} records a result once more"));
            }
        }
        match wrote.kind {
            ChangeKind::Answer => {
                if line.answered >= turn {
                    wrong.push(format!("{wrote:?} answers a turn once more"));
                }
                line.answered = turn;
            }
            ChangeKind::CompleteTurn => line.completed = turn,
            ChangeKind::Finish => line.completed = wrote.turn.unwrap_or(line.completed),
            _ => {}
        }
        if matches!(wrote.kind, ChangeKind::CompleteTurn | ChangeKind::Finish) {
            self.claims.stalls.remove(&wrote.lease.run);
        }
        for what in wrong {
            self.wrong(what);
        }
    }

    /// A holder who does what he should is never refused.
    fn refused(&mut self, call: Call, why: &str) {
        let Some((_, Asked::Write(kind, lease))) = self.asked.get(&call).copied() else {
            return;
        };
        let in_force = self.holder(lease.run).is_some_and(|it| it.lease == lease);
        self.unless(!in_force || LATE_WRITES, || {
            format!("the holder's {kind:?} is refused: {lease:?}, {why}")
        });
    }

    fn reclaimed(&mut self, lease: Lease, status: RunStatus) {
        let now = self.store_now();
        let holder = self.holder(lease.run);
        let held = holder.is_some_and(|it| it.lease == lease);
        self.unless(held, || format!("{lease:?} is taken back and not in force"));
        let silent = holder.is_none_or(|it| it.until <= now);
        self.unless(silent, || format!("{lease:?} is taken back while it lasts"));
        let quiet = self.plan.is_quiet();
        self.unless(!quiet, || {
            format!("{lease:?} is taken back without a fault")
        });
        let stalls = self.claims.stalls.entry(lease.run).or_default();
        *stalls += 1;
        let doublings = stalls.checked_sub(2);
        if status.is_terminal() {
            self.ends(lease.run, status);
            return;
        }
        self.goes_back(lease.run);
        if let (Some(doublings), Some(line)) = (doublings, self.line_mut(lease.run)) {
            line.available = now + Duration::from_secs(1 << doublings.min(8));
        }
    }

    fn goes_back(&mut self, run: RunId) {
        if let Some(line) = self.line_mut(run) {
            line.holder = None;
        }
    }

    fn asked_to_end(&mut self, run: RunId) {
        let at = self.at;
        if let Some(line) = self.line_mut(run) {
            line.cancel.get_or_insert(at);
        }
    }

    fn ends(&mut self, run: RunId, status: RunStatus) {
        let Some(line) = self.line_mut(run) else {
            return;
        };
        line.holder = None;
        let before = line.ended.replace(status);
        let cancel = line.cancel.is_some();
        self.unless(before.is_none(), || {
            format!("{run} ends once more, as {status}")
        });
        let as_asked = !cancel || status == RunStatus::Cancelled;
        self.unless(as_asked, || {
            format!("{run} was asked to end and is {status}")
        });
    }

    pub(super) fn holder(&self, run: RunId) -> Option<Holder> {
        self.lines.get(&run)?.holder
    }

    fn line_mut(&mut self, run: RunId) -> Option<&mut Line> {
        self.lines.get_mut(&run)
    }

    /// The state of a call's journal.
    pub(super) fn journal(&self, run: RunId, turn: u32, position: u32) -> Journal {
        let line = self.lines.get(&run);
        let call = line.and_then(|line| line.calls.get(&(turn, position)));
        call.copied().unwrap_or_default()
    }
}

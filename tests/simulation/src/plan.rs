//! What a seed decides before anything happens: how the engines are set, and how much goes wrong.

use std::time::Duration;

use hango_application::engine::EngineSettings;
use hango_domain::agent::RunLimits;
use hango_domain::retry::RetryPolicy;

use crate::dice::Dice;

/// How long a claim lasts without renewal.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(600);
pub(crate) const SWEEP: Duration = Duration::from_millis(500);
pub(crate) const POLL: Duration = Duration::from_millis(300);

/// Held up for no longer than this nobody notices: a lease has a margin of a tenth, half of which may be
/// spent on the answer to a last write.
pub(crate) const BRIEF_MS: u32 = 90;

/// How long things go wrong.
pub(crate) const TROUBLE: Duration = Duration::from_secs(6);

/// Whether a fenced write too may arrive after its process gave it up, and made it again, and made the next
/// one. Not so far: a write that comes behind a newer one of its claim is taken for a new one where the turn
/// allows it (a result is recorded once more, and the call begun again that followed it).
pub(crate) const LATE_WRITES: bool = false;

/// See the module. Chances are in a hundred.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) processes: u32,
    pub(crate) engine: EngineSettings,
    /// Sessions of each tenant.
    pub(crate) sessions: u32,
    /// Runs that clients ask for.
    pub(crate) runs: u32,
    /// Runs of which a client asks for the end.
    pub(crate) cancels: u32,
    /// Requests to the store that go wrong.
    pub(crate) store: u32,
    /// Whether a request whose answer was waited for in vain may be done after that.
    pub(crate) late: bool,
    /// Times when the store is out of reach.
    pub(crate) storms: u32,
    /// Times when the store's clock steps forward.
    pub(crate) steps: u32,
    /// Model calls that go wrong.
    pub(crate) provider: u32,
    /// Executions of tools that go wrong.
    pub(crate) tools: u32,
    /// Hints that are lost.
    pub(crate) hints: u32,
    /// Kills, hold-ups, drains and cuts of the line to the store, of each process.
    pub(crate) process: u32,
    /// Whether processes are held up briefly now and then.
    pub(crate) stutter: bool,
    /// Suspensions of tenants, and users who are disabled.
    pub(crate) people: u32,
}

impl Plan {
    /// Most seeds have some kinds of trouble and not others, so that what one kind does alone is seen
    /// too; one in eight has none but what providers and tools do.
    pub(crate) fn draw(dice: &Dice) -> Self {
        let quiet = dice.percent(12);
        let sometimes = |most: u32| {
            if quiet || dice.percent(40) {
                0
            } else {
                dice.between(1, most)
            }
        };
        Self {
            store: sometimes(25),
            late: !quiet && dice.percent(50),
            storms: sometimes(2),
            steps: if dice.percent(80) { 0 } else { sometimes(2) },
            process: sometimes(3),
            stutter: !quiet && dice.percent(50),
            people: sometimes(2),
            provider: if dice.percent(30) {
                0
            } else {
                dice.between(1, 50)
            },
            tools: if dice.percent(30) {
                0
            } else {
                dice.between(1, 50)
            },
            hints: dice.one_of(&[0, 30, 100]),
            processes: dice.between(1, 3),
            sessions: dice.between(1, 3),
            runs: dice.between(2, 9),
            cancels: dice.one_of(&[0, 1, 3]),
            engine: engine(dice),
        }
    }

    /// Whether requests to the store go wrong.
    pub(crate) const fn has_store_trouble(&self) -> bool {
        self.store > 0 || self.storms > 0
    }

    /// Whether neither the store, nor a process, nor a hold-up may cost a run its claim.
    pub(crate) const fn is_quiet(&self) -> bool {
        !self.has_store_trouble() && self.steps == 0 && self.process == 0
    }
}

fn engine(dice: &Dice) -> EngineSettings {
    EngineSettings {
        workers: dice.between(1, 3) as usize,
        lease_ttl: LEASE,
        heartbeat: HEARTBEAT,
        reclaim_interval: SWEEP,
        poll_interval: POLL,
        max_stalled: dice.one_of(&[0, 2, 5]),
        running_per_tenant: dice.one_of(&[0, 0, 1, 2]),
        limits: RunLimits {
            max_iterations: dice.between(2, 5),
            tool_timeout: Duration::from_secs(2),
            deadline: Duration::from_secs(dice.between(8, 30).into()),
        },
        tool_concurrency: dice.between(1, 3) as usize,
        tool_output_max_bytes: 1024,
        repeat_call_threshold: 3,
        retry: RetryPolicy {
            max_retries: dice.between(0, 3),
            inline_wait: Duration::from_secs(1),
        },
        retention: None,
        exclusive: false,
    }
}

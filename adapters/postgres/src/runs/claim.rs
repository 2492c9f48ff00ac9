//! Handing runs out: choose, lock and write in one transaction for the whole batch; what executors need is
//! read afterwards ([`context`](super::context)).
//!
//! What is locked is each run's session, and what others have locked is passed over: of any number of
//! claimers each gets other runs, and none waits. Whether a run is still what it seemed when it was
//! chosen the write compares.
//!
//! The cap of a tenant is a rule over many rows, and no column counts them: it would be one hot row of
//! every claim and every end. Who claims under a cap locks the tenants first, so that one claimer at a
//! time counts; and counts in a second statement, since a statement sees nothing that was committed while
//! it waited for its locks. Tenants that were not among those it locked are left to the next claim.

use std::collections::BTreeMap;
use std::time::Instant;

use hango_domain::Timestamp;
use hango_domain::agent::AgentSnapshot;
use hango_domain::conversation::Message;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::queue::SetAside;
use hango_domain::run::{Change, Run};
use hango_domain::session::SessionLine;
use hango_ports::StoreFailure;
use hango_ports::run_store::{ClaimRequest, Claimed, RunContext, Standing};
use sqlx::PgConnection;

use super::change::decide;
use super::context::{histories, open_calls};
use super::eligible::{Chosen, choose, lock_tenants};
use super::held::Remembered;
use super::store;
use super::writes::Writes;
use crate::clock::StoreClock;
use crate::error::Error;
use crate::pool::Pool;

/// A claim, without what has to be read for it.
pub(super) struct Taken {
    run: Run,
    events: Vec<Event>,
    standing: Standing,
    now: Timestamp,
    agent: Result<AgentSnapshot, Error>,
    /// Where the session stands after it.
    line: SessionLine,
    /// How many messages were there before it.
    had: u64,
    /// What it added to them.
    said: Vec<Message>,
}

/// Claims what is eligible; of how many that were selected.
pub(super) async fn take(
    conn: &mut PgConnection,
    clock: &StoreClock,
    aside: &SetAside,
    request: &ClaimRequest,
) -> Result<(usize, Vec<Taken>), Error> {
    let tenants = if request.limits.running_per_tenant > 0 {
        Some(lock_tenants(conn).await?)
    } else {
        None
    };
    let asked = Instant::now();
    let chosen = choose(conn, clock, aside, request, tenants.as_deref()).await?;
    let Some(first) = chosen.first() else {
        return Ok((0, Vec::new()));
    };
    let selected = chosen.len();
    let now = first.loaded.now;
    // What is written next must not seem to be earlier.
    clock.told(now, asked);
    let mut writes = Writes::new(now);
    let mut taken = Vec::with_capacity(chosen.len());
    for Chosen { loaded, snapshot } in chosen {
        let change = Change::Claim {
            owner: request.owner,
            ttl: request.ttl,
        };
        // What the rule forbids now was another run when it was chosen.
        if let Ok((applied, line)) = decide(&mut writes, &loaded.run, loaded.line, change.clone()) {
            let said = change.effects(&loaded.run, &applied.run).said;
            let said = (loaded.line.last_seq + 1..).zip(said);
            let (session, run) = (applied.run.session_id, applied.run.id);
            taken.push(Taken {
                said: said
                    .map(|(seq, message)| message.stored(session, Some(run), seq, now))
                    .collect(),
                had: loaded.line.last_seq,
                run: applied.run,
                events: applied.events,
                line,
                standing: loaded.standing,
                now,
                agent: match loaded.damage {
                    Some(damage) => Err(damage),
                    None => snapshot,
                },
            });
        }
    }
    let stored = store::store(conn, &writes).await?;
    taken.retain_mut(|it| match stored.standing(it.run.id, it.standing) {
        Some(standing) => {
            it.standing = standing;
            true
        }
        None => false,
    });
    Ok((selected, taken))
}

/// The claims with what their executors need. One for which that cannot be read, for a reason that is not
/// its own, is left out: a renewal finds that nobody executes it.
pub(super) async fn complete(pool: &Pool, taken: Vec<Taken>) -> Vec<Claimed> {
    let lengths: BTreeMap<_, _> = taken.iter().map(|it| (it.run.session_id, it.had)).collect();
    let runs: Vec<&Run> = taken.iter().map(|it| &it.run).collect();
    let mut histories = histories(pool, &lengths).await;
    let mut calls = open_calls(pool, &runs).await;
    let claimed = taken.into_iter().filter_map(|it| {
        let history = histories.remove(&it.run.session_id)?;
        let calls = calls.remove(&it.run.id)?;
        it.claimed(history, calls)
    });
    claimed.collect()
}

impl Taken {
    /// What is remembered of it; nothing where it is not whole.
    pub(super) fn to_remember(&self) -> Option<Remembered> {
        self.agent.is_ok().then(|| Remembered {
            run: self.run.clone(),
            line: self.line,
            standing: self.standing,
        })
    }

    fn claimed(
        self,
        history: Result<Vec<Message>, Error>,
        calls: Result<Vec<ToolCall>, Error>,
    ) -> Option<Claimed> {
        let context = self.agent.and_then(|agent| {
            let mut history = history?;
            history.extend(self.said);
            Ok(RunContext {
                agent,
                history,
                calls: calls?,
            })
        });
        Some(Claimed {
            lease: self.run.lease()?,
            elapsed: self.now.since(self.run.started_at.unwrap_or(self.now)),
            run: self.run,
            standing: self.standing,
            events: self.events,
            context: context.map_err(StoreFailure::from),
        })
    }
}

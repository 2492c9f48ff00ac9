//! Handing runs out, in one transaction for the whole batch: choose and lock, write, read what the
//! executors need.
//!
//! What is locked is each run's session, and what others have locked is passed over: of any number of
//! claimers each gets other runs, and none waits. Whether a run is still what it seemed when it was
//! chosen the write compares.
//!
//! The cap of a tenant is a rule over many rows, and no column counts them: it would be one hot row of
//! every claim and every end. Who claims under a cap locks the tenants first, so that one claimer at a
//! time counts; and counts in a second statement, since a statement sees nothing that was committed while
//! it waited for its locks.

use hango_domain::Timestamp;
use hango_domain::agent::AgentSnapshot;
use hango_domain::conversation::Message;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::run::{Change, Run};
use hango_domain::session::SessionLine;
use hango_ports::StoreFailure;
use hango_ports::run_store::{ClaimRequest, Claimed, RunContext, Standing};
use sqlx::PgConnection;

use super::change::decide;
use super::context::{histories, open_calls};
use super::eligible::{Chosen, LOCK_TENANTS, choose};
use super::held::Remembered;
use super::store;
use super::writes::Writes;
use crate::clock::StoreClock;
use crate::error::Error;

/// A claim, and where its session stands after it.
pub(super) struct Taken {
    pub(super) claimed: Claimed,
    pub(super) line: SessionLine,
}

impl Taken {
    /// What is remembered of it; nothing where it is not whole.
    pub(super) fn to_remember(&self) -> Option<Remembered> {
        self.claimed.context.is_ok().then(|| Remembered {
            run: self.claimed.run.clone(),
            line: self.line,
            standing: self.claimed.standing,
        })
    }
}

/// Claims what is eligible. A run whose row cannot be read is left where it is, and said in the log:
/// nobody else has to wait for it.
pub(super) async fn take(
    conn: &mut PgConnection,
    clock: &StoreClock,
    request: &ClaimRequest,
) -> Result<Vec<Taken>, Error> {
    if request.limits.running_per_tenant > 0 {
        sqlx::query(LOCK_TENANTS).execute(&mut *conn).await?;
    }
    let chosen = choose(conn, clock, request).await?;
    let Some(first) = chosen.first() else {
        return Ok(Vec::new());
    };
    let mut writes = Writes::new(first.loaded.now);
    let mut decided = Vec::with_capacity(chosen.len());
    for Chosen { loaded, snapshot } in chosen {
        let change = Change::Claim {
            owner: request.owner,
            ttl: request.ttl,
        };
        // What the rule forbids now was another run when it was chosen.
        if let Ok((applied, line)) = decide(&mut writes, &loaded.run, loaded.line, change) {
            decided.push(Decided {
                run: applied.run,
                events: applied.events,
                line,
                standing: loaded.standing,
                agent: match loaded.damage {
                    Some(damage) => Err(damage),
                    None => snapshot,
                },
            });
        }
    }
    let stored = store::store(conn, &writes).await?;
    decided.retain_mut(|it| match stored.standing(it.run.id, it.standing) {
        Some(standing) => {
            it.standing = standing;
            true
        }
        None => false,
    });
    let runs: Vec<&Run> = decided.iter().map(|it| &it.run).collect();
    let mut histories = histories(conn, &runs).await?;
    let mut calls = open_calls(conn, &runs).await?;
    let with_context = decided.into_iter().filter_map(|it| {
        let history = histories
            .remove(&it.run.session_id)
            .unwrap_or(Ok(Vec::new()));
        let calls = calls.remove(&it.run.id).unwrap_or(Ok(Vec::new()));
        it.taken(writes.at, history, calls)
    });
    Ok(with_context.collect())
}

/// A claim, as far as it was decided.
struct Decided {
    run: Run,
    events: Vec<Event>,
    line: SessionLine,
    standing: Standing,
    agent: Result<AgentSnapshot, Error>,
}

impl Decided {
    fn taken(
        self,
        now: Timestamp,
        history: Result<Vec<Message>, Error>,
        calls: Result<Vec<ToolCall>, Error>,
    ) -> Option<Taken> {
        let context = self.agent.and_then(|agent| {
            Ok(RunContext {
                agent,
                history: history?,
                calls: calls?,
            })
        });
        Some(Taken {
            line: self.line,
            claimed: Claimed {
                lease: self.run.lease()?,
                elapsed: now.since(self.run.started_at.unwrap_or(now)),
                run: self.run,
                standing: self.standing,
                events: self.events,
                context: context.map_err(StoreFailure::from),
            },
        })
    }
}

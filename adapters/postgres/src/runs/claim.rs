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

use std::collections::BTreeMap;

use hango_domain::agent::AgentSnapshot;
use hango_domain::conversation::Message;
use hango_domain::event::Event;
use hango_domain::journal::{ToolCall, has_open_answer};
use hango_domain::run::{Change, Run};
use hango_domain::session::SessionLine;
use hango_domain::{RunId, SessionId, Timestamp};
use hango_ports::StoreFailure;
use hango_ports::run_store::{ClaimRequest, Claimed, RunContext, Standing};
use sqlx::PgConnection;

use super::change::decide;
use super::held::Remembered;
use super::load::{Loaded, loaded_columns, looked_up};
use super::store;
use super::writes::Writes;
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows::{self, integer, small};

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

/// What [`hango_domain::queue::eligible`] asks of a queued run `q` alone, whose row is `r`: the first of its session that has not ended, due, of a memory format that the claimer
/// reads. Parameters: 1 what stands in for the database's time, 2 the format.
macro_rules! is_due_head {
    () => {
        "(q.available_at is null or q.available_at <= coalesce($1, statement_timestamp()))
           and r.state_version <= $2
           and not exists (select from running_runs x where x.session_id = q.session_id)
           and not exists (
               select from queued_runs e
               where e.session_id = q.session_id and e.session_no < q.session_no)"
    };
}

/// The tenants that have queued runs, found one after the other in the index.
macro_rules! waiting_tenants {
    () => {
        "with recursive waiting (tenant_id) as (
             (select q.tenant_id from queued_runs q order by q.tenant_id limit 1)
             union all
             select (select q.tenant_id from queued_runs q where q.tenant_id > w.tenant_id
                     order by q.tenant_id limit 1)
             from waiting w where w.tenant_id is not null
         )"
    };
}

/// Reads the chosen `heads`, one after the other in their order, and locks the session of each, until
/// there are as many as were asked for. What can have become otherwise since they were chosen is asked
/// again of the row that is locked.
macro_rules! locked_heads {
    () => {
        concat!(
            " select ",
            loaded_columns!(),
            ", a.snapshot
             from (select * from heads order by round, created_at, run_id offset 0) h",
            looked_up!("runs", "h.run_id", "r"),
            " cross join lateral (
                 select * from sessions
                 where sessions.id = r.session_id and sessions.running_run is null
                 for no key update skip locked) s",
            looked_up!("users", "r.created_by", "u"),
            looked_up!("tenants", "r.tenant_id", "t"),
            " left join lateral (
                 select * from agent_snapshots
                 where agent_id = r.agent_id and version = r.agent_version offset 0) a on true
             limit $3"
        )
    };
}

/// The runs to claim, in order: [`hango_domain::queue::eligible`], in SQL. Of each tenant twice as many
/// are looked at as are asked for, its oldest, so that there is something left where another claimer is
/// at work on the first; then tenants take turns (`round`), beginning with those that have the fewest
/// running, which need not be known where only one of them has anything to claim.
///
/// Parameters: 3 how many, 4 the cap of a tenant (0 for none), 5 is null.
pub(super) const ELIGIBLE: &str = concat!(
    waiting_tenants!(),
    ",
     running (tenant_id, runs) as (
         select tenant_id, count(*) from running_runs
         where $4 > 0 or (select count(tenant_id) from waiting) > 1
         group by tenant_id
     ),
     heads as (
         select q.run_id, q.created_at, coalesce(running.runs, 0) + q.round as round
         from waiting w
         join tenants t on t.id = w.tenant_id and t.status = 'active'
         left join running on running.tenant_id = w.tenant_id
         cross join lateral (
             select q.run_id, q.created_at,
                 row_number() over (order by q.created_at, q.run_id) as round
             from queued_runs q",
    looked_up!("runs", "q.run_id", "r"),
    "        where q.tenant_id = w.tenant_id and ",
    is_due_head!(),
    "        order by q.created_at, q.run_id
             limit 2 * $3
         ) q
         where $4 = 0 or coalesce(running.runs, 0) + q.round <= $4
     ) ",
    locked_heads!(),
);

/// This run, if it may be claimed: it stands behind nobody but the earlier runs of its session and its
/// tenant's cap. Parameter 5 names it.
pub(super) const ELIGIBLE_ALONE: &str = concat!(
    "with heads as (
         select q.run_id, q.created_at, 1 as round
         from (values ($5::uuid)) as asked (run_id)",
    looked_up!("runs", "asked.run_id", "r"),
    looked_up!("tenants", "r.tenant_id", "t"),
    "    cross join lateral (
             select * from queued_runs
             where session_id = r.session_id and session_no = r.session_no offset 0) q
         where t.status = 'active'
           and ($4 = 0 or $4 > (select count(*) from running_runs x
                                where x.tenant_id = r.tenant_id))
           and ",
    is_due_head!(),
    ") ",
    locked_heads!(),
);

/// Locks the tenants that have queued runs, in an order that all claimers share.
pub(super) const LOCK_TENANTS: &str = concat!(
    waiting_tenants!(),
    "select from tenants t
     where t.id in (select w.tenant_id from waiting w)
     order by t.id
     for no key update"
);

/// Every message of each of these sessions.
pub(super) const HISTORIES: &str =
    "select m.id, m.session_id, m.run_id, m.seq, m.role, m.content, m.stop_reason, m.usage, \
             m.partial, m.created_at
         from unnest($1::uuid[]) as s (id)
         cross join lateral (
             select * from messages where session_id = s.id order by seq offset 0) m";

/// The journal of one turn of each of these runs.
pub(super) const OPEN_CALLS: &str =
    "select c.id, c.run_id, c.turn, c.position, c.tool_use_id, c.name, c.input, \
             c.invalid_input, c.state, c.executions, c.result, c.started_at, c.finished_at
         from unnest($1::uuid[], $2::int[]) as r (id, turn)
         cross join lateral (
             select * from tool_calls
             where run_id = r.id and turn = r.turn order by position offset 0) c";

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

/// A run that was chosen and is locked.
struct Chosen {
    loaded: Loaded,
    snapshot: Result<AgentSnapshot, Error>,
}

async fn choose(
    conn: &mut PgConnection,
    clock: &StoreClock,
    request: &ClaimRequest,
) -> Result<Vec<Chosen>, Error> {
    let limits = request.limits;
    let statement = match request.only {
        None => ELIGIBLE,
        Some(_) => ELIGIBLE_ALONE,
    };
    let rows = sqlx::query(statement)
        .bind(clock.given())
        .bind(small(limits.memory_version))
        .bind(integer(u64::from(limits.runs)))
        .bind(integer(u64::from(limits.running_per_tenant)))
        .bind(request.only.map(|run| run.0))
        .fetch_all(conn)
        .await?;
    let mut chosen = Vec::with_capacity(rows.len());
    for row in &rows {
        match Loaded::new(row) {
            Ok(loaded) => chosen.push(Chosen {
                loaded,
                snapshot: rows::agent_snapshot(row),
            }),
            Err(error @ Error::Unreadable { .. }) => {
                tracing::error!(%error, "a queued run cannot be claimed");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(chosen)
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

/// Every message of each run's session, oldest first. What cannot be read is that session's alone.
async fn histories(
    conn: &mut PgConnection,
    runs: &[&Run],
) -> Result<BTreeMap<SessionId, Result<Vec<Message>, Error>>, Error> {
    let sessions: Vec<_> = runs.iter().map(|run| run.session_id.0).collect();
    let rows = sqlx::query(HISTORIES)
        .bind(sessions)
        .fetch_all(conn)
        .await?;
    let mut histories = BTreeMap::new();
    for row in &rows {
        let session = rows::session_of(row)?;
        collect(
            histories.entry(session).or_insert(Ok(Vec::new())),
            rows::message(row),
        );
    }
    Ok(histories)
}

/// The journal of each run's answered turn that is not complete.
async fn open_calls(
    conn: &mut PgConnection,
    runs: &[&Run],
) -> Result<BTreeMap<RunId, Result<Vec<ToolCall>, Error>>, Error> {
    let open: Vec<_> = runs.iter().filter(|run| has_open_answer(run)).collect();
    if open.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<_> = open.iter().map(|run| run.id.0).collect();
    let turns: Vec<_> = open
        .iter()
        .map(|run| small(run.progress.answered_turn))
        .collect();
    let rows = sqlx::query(OPEN_CALLS)
        .bind(ids)
        .bind(turns)
        .fetch_all(conn)
        .await?;
    let mut calls = BTreeMap::new();
    for row in &rows {
        let run = rows::run_of(row)?;
        collect(
            calls.entry(run).or_insert(Ok(Vec::new())),
            rows::tool_call(row),
        );
    }
    Ok(calls)
}

/// Adds what was read to a list; the first error stands for all of it.
fn collect<T>(list: &mut Result<Vec<T>, Error>, read: Result<T, Error>) {
    match (list.as_mut(), read) {
        (Ok(list), Ok(item)) => list.push(item),
        (Ok(_), Err(error)) => *list = Err(error),
        (Err(_), _) => {}
    }
}

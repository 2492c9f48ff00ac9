//! Handing runs out.

use std::time::Instant;

use hango_domain::journal::has_open_answer;
use hango_domain::queue::SetAside;
use hango_domain::run::{Change, Run};
use hango_domain::{RunId, Timestamp};
use hango_ports::StoreFailure;
use hango_ports::run_store::{ClaimRequest, Claimed, RunContext, RunStoreError};
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::types::Json;

use super::change::{self, Made};
use super::table::{self, Loaded};
use super::{journal, read};
use crate::error::Error;
use crate::{messages, rows};

/// A run that was claimed, without its context.
pub(crate) struct Taken {
    made: Made,
    damage: Option<Error>,
    now: Timestamp,
}

/// Claims what is eligible.
pub(crate) async fn take(
    conn: &mut SqliteConnection,
    aside: &SetAside,
    request: ClaimRequest,
    now: Timestamp,
) -> Result<Vec<Taken>, RunStoreError> {
    let mut taken = Vec::new();
    for loaded in eligible(conn, aside, &request, now).await? {
        let damage = loaded.damage.clone();
        let change = Change::Claim {
            owner: request.owner,
            ttl: request.ttl,
        };
        let made = change::make(conn, loaded, change, now).await?;
        taken.push(Taken { made, damage, now });
    }
    Ok(taken)
}

/// The claim as its executor needs it. What cannot be read is this run's alone; that the database
/// does not answer is everybody's.
pub(crate) async fn with_context(
    readers: &SqlitePool,
    taken: Taken,
) -> Result<Claimed, RunStoreError> {
    let Made { applied, standing } = taken.made;
    let run = applied.run;
    let context = match taken.damage {
        Some(damage) => Err(damage),
        None => context(readers, &run).await,
    };
    let context = match context.map_err(StoreFailure::from) {
        Err(failure @ (StoreFailure::Unavailable(_) | StoreFailure::OutOfSpace(_))) => {
            return Err(failure.into());
        }
        context => context,
    };
    Ok(Claimed {
        lease: run.lease().ok_or(RunStoreError::NotFound)?,
        elapsed: taken.now.since(run.started_at.unwrap_or(taken.now)),
        run,
        standing,
        events: applied.events,
        context,
    })
}

async fn context(readers: &SqlitePool, run: &Run) -> Result<RunContext, Error> {
    let mut conn = readers.acquire().await?;
    let calls = if has_open_answer(run) {
        journal::calls(&mut *conn, run.id, Some(run.progress.answered_turn)).await?
    } else {
        Vec::new()
    };
    Ok(RunContext {
        agent: read::agent_snapshot(&mut *conn, run.id).await?,
        history: messages::history(&mut *conn, run.session_id).await?,
        calls,
    })
}

/// What [`hango_domain::queue::eligible`] asks of a run alone: the first of its session that has not
/// ended, due, of a memory format that the claimer reads; and that it is not set aside. Parameters: 1 the
/// moment, 2 the format, 6 what is set aside.
macro_rules! is_due_head {
    () => {
        "q.state = 'queued'
           and (q.available_at is null or q.available_at <= ?1)
           and q.state_version <= ?2
           and q.id not in (select value from json_each(?6))
           and not exists (
               select 1 from runs e
               where e.session_id = q.session_id and e.state in ('queued', 'running')
                 and (e.session_no < q.session_no or e.state = 'running'))"
    };
}

/// The runs to claim, in order: [`hango_domain::queue::eligible`], in SQL.
///
/// Walks the tenants that have queued runs by the index (`waiting`), takes no more of each than are
/// asked for, its oldest, and lets tenants take turns (`round`), beginning with those that have the
/// fewest running (`running_runs`). Left to itself SQLite would read a
/// tenant's ended runs too, so each index is named.
pub(super) const ELIGIBLE: &str = concat!(
    "with recursive
     waiting (tenant_id) as (
         select min(tenant_id) from runs indexed by runs_queued where state = 'queued'
         union all
         select (select min(r.tenant_id) from runs r indexed by runs_queued
                 where r.state = 'queued' and r.tenant_id > w.tenant_id)
         from waiting w where w.tenant_id is not null
     ),
     running (tenant_id, runs) as materialized (
         select tenant_id, count(*) from runs indexed by runs_running
         where state = 'running'
         group by tenant_id
     ),
     heads as (
         select r.id, r.created_at, coalesce(running.runs, 0) as running_runs,
             row_number() over (partition by r.tenant_id order by r.created_at, r.id) as round
         from waiting w
         join tenants t on t.id = w.tenant_id and t.status = 'active'
         join runs r on r.id in (
             select q.id from runs q indexed by runs_queued
             where q.tenant_id = w.tenant_id and ",
    is_due_head!(),
    "        order by q.created_at, q.id
             limit ?3)
         left join running on running.tenant_id = w.tenant_id
     )
     select id from heads
     where ?4 = 0 or running_runs + round <= ?4
     order by running_runs + round, created_at, id
     limit ?3"
);

/// This run, if it may be claimed: it stands behind nobody but the earlier runs of its session and its
/// tenant's cap.
pub(super) const ELIGIBLE_ALONE: &str = concat!(
    "select q.id from runs q join tenants t on t.id = q.tenant_id and t.status = 'active'
     where q.id = ?5
       and (?4 = 0 or ?4 > (select count(*) from runs r indexed by runs_running
                            where r.tenant_id = q.tenant_id and r.state = 'running'))
       and ",
    is_due_head!(),
    " limit ?3"
);

/// How often a claim chooses anew because it met what cannot be read.
const TRIES: u32 = 8;

/// Chooses what is eligible, and reads it. A run whose row cannot be read is left where it is, and set
/// aside: others get its place, in this claim already.
async fn eligible(
    conn: &mut SqliteConnection,
    aside: &SetAside,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Vec<Loaded>, Error> {
    let mut tries = 1;
    loop {
        let heads = heads(conn, aside, request, now).await?;
        let mut chosen = Vec::with_capacity(heads.len());
        for run in &heads {
            let what = "a queued run cannot be claimed";
            chosen.extend(table::load_or_aside(conn, *run, aside, what).await?);
        }
        if chosen.len() == heads.len() || tries == TRIES {
            return Ok(chosen);
        }
        tries += 1;
    }
}

async fn heads(
    conn: &mut SqliteConnection,
    aside: &SetAside,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Vec<RunId>, Error> {
    let limits = request.limits;
    let statement = match request.only {
        None => ELIGIBLE,
        Some(_) => ELIGIBLE_ALONE,
    };
    let rows = sqlx::query(statement)
        .bind(now.as_micros())
        .bind(limits.memory_version)
        .bind(limits.runs)
        .bind(limits.running_per_tenant)
        .bind(request.only.map(|run| run.to_string()))
        .bind(Json(aside.runs(Instant::now())))
        .fetch_all(conn)
        .await?;
    rows::all(&rows, rows::run_id)
}

//! Which runs a claim gets: [`hango_domain::queue::eligible`], in SQL.

use std::time::Instant;

use hango_domain::agent::AgentSnapshot;
use hango_domain::queue::SetAside;
use hango_ports::run_store::ClaimRequest;
use sqlx::PgConnection;
use uuid::Uuid;

use super::load::{Loaded, loaded_columns, looked_up};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows::{self, integer, small};

/// What [`hango_domain::queue::eligible`] asks of a queued run `q` alone, whose row is `r`: the first of its
/// session that has not ended, due, of a memory format that the claimer reads; and that it is not set
/// aside. Parameters: 1 what stands in for the database's time, 2 the format, 6 what is set aside.
macro_rules! is_due_head {
    () => {
        "(q.available_at is null or q.available_at <= coalesce($1, statement_timestamp()))
           and r.state_version <= $2
           and q.run_id <> all ($6)
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

/// The oldest runs of a tenant that may be claimed, that many.
macro_rules! first_heads {
    ($tenant:literal, $limit:literal) => {
        concat!(
            "(select q.run_id, q.created_at,
                  row_number() over (order by q.created_at, q.run_id) as round
              from queued_runs q",
            looked_up!("runs", "q.run_id", "r"),
            " where q.tenant_id = ",
            $tenant,
            " and ",
            is_due_head!(),
            " order by q.created_at, q.run_id limit ",
            $limit,
            ") q "
        )
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

/// The runs to claim, in order: [`hango_domain::queue::eligible`], in SQL. Tenants take turns (`round`),
/// beginning with those that have the fewest running, which need not be known where only one of them has
/// anything to claim. Who comes first is known from the first run of each tenant (`firsts`), and no more
/// tenants are looked at further than runs are wanted. That is twice as many as are asked for, so that
/// there is something left where another claimer is at work on the first.
///
/// Parameters: 3 how many, 4 the cap of a tenant (0 for none), 5 is null, 7 the tenants (null for all).
pub(super) const ELIGIBLE: &str = concat!(
    waiting_tenants!(),
    ",
     running (tenant_id, runs) as (
         select tenant_id, count(*) from running_runs
         where $4 > 0 or (select count(tenant_id) from waiting) > 1
         group by tenant_id
     ),
     firsts as (
         select w.tenant_id, coalesce(running.runs, 0) as running
         from waiting w
         join tenants t on t.id = w.tenant_id and t.status = 'active'
         left join running on running.tenant_id = w.tenant_id
         cross join lateral ",
    first_heads!("w.tenant_id", "1"),
    "    where ($4 = 0 or coalesce(running.runs, 0) < $4)
           and ($7::uuid[] is null or w.tenant_id = any ($7))
         order by coalesce(running.runs, 0), q.created_at, q.run_id
         limit 2 * $3
     ),
     heads as (
         select q.run_id, q.created_at, f.running + q.round as round
         from firsts f
         cross join lateral ",
    first_heads!("f.tenant_id", "2 * $3"),
    "    where $4 = 0 or f.running + q.round <= $4
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
           and ($7::uuid[] is null or t.id = any ($7))
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
    "select t.id from tenants t
     where t.id in (select w.tenant_id from waiting w)
     order by t.id
     for no key update"
);

/// Locks the tenants that have queued runs, and tells which they are: one that has some only since then
/// is not locked, and another claimer may be counting its runs.
pub(super) async fn lock_tenants(conn: &mut PgConnection) -> Result<Vec<Uuid>, Error> {
    let locked = sqlx::query_scalar(LOCK_TENANTS).fetch_all(conn).await?;
    Ok(locked)
}

/// A run that was chosen and is locked.
pub(super) struct Chosen {
    pub(super) loaded: Loaded,
    pub(super) snapshot: Result<AgentSnapshot, Error>,
}

/// How often a claim chooses anew because it met what cannot be read.
const TRIES: u32 = 8;

/// Chooses what is eligible, of these tenants (`None` for all), and locks it. A run whose row cannot be read is left where it is, and set
/// aside: others get its place, in this claim already.
pub(super) async fn choose(
    conn: &mut PgConnection,
    clock: &StoreClock,
    aside: &SetAside,
    request: &ClaimRequest,
    tenants: Option<&[Uuid]>,
) -> Result<Vec<Chosen>, Error> {
    let limits = request.limits;
    let statement = match request.only {
        None => ELIGIBLE,
        Some(_) => ELIGIBLE_ALONE,
    };
    let mut tries = 1;
    loop {
        let left_out: Vec<_> = aside.runs(Instant::now());
        let left_out: Vec<_> = left_out.iter().map(|run| run.0).collect();
        let rows = sqlx::query(statement)
            .bind(clock.given())
            .bind(small(limits.memory_version))
            .bind(integer(u64::from(limits.runs)))
            .bind(integer(u64::from(limits.running_per_tenant)))
            .bind(request.only.map(|run| run.0))
            .bind(left_out)
            .bind(tenants)
            .fetch_all(&mut *conn)
            .await?;
        let mut chosen = Vec::with_capacity(rows.len());
        for row in &rows {
            let what = "a queued run cannot be claimed";
            if let Some(loaded) = Loaded::or_aside(row, aside, what)? {
                chosen.push(Chosen {
                    loaded,
                    snapshot: rows::agent_snapshot(row),
                });
            }
        }
        if chosen.len() == rows.len() || tries == TRIES {
            return Ok(chosen);
        }
        tries += 1;
    }
}

//! Which runs a claim gets: [`hango_domain::queue::eligible`], in SQL.

use hango_domain::agent::AgentSnapshot;
use hango_ports::run_store::ClaimRequest;
use sqlx::PgConnection;

use super::load::{Loaded, loaded_columns, looked_up};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows::{self, integer, small};

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

/// A run that was chosen and is locked.
pub(super) struct Chosen {
    pub(super) loaded: Loaded,
    pub(super) snapshot: Result<AgentSnapshot, Error>,
}

/// Chooses what is eligible, and locks it. A run whose row cannot be read is left where it is.
pub(super) async fn choose(
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

//! Runs among the others that have not ended: one of them with all that its state depends on, and how many
//! there are.

use hango_domain::RunId;
use hango_domain::access::Visibility;
use hango_ports::run_store::{Census, Situation};
use sqlx::PgConnection;

use super::load::{Loaded, loaded_columns, loaded_joins, looked_up};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows;

/// A run that the caller sees, with what [`Situation`] has beside it. Parameter 1 stands in for the
/// database's time.
pub(super) const SITUATION: &str = concat!(
    "select ",
    loaded_columns!(),
    ", (select coalesce(array_agg(b.id order by b.session_no), '{}')
        from (select run_id from queued_runs where session_id = r.session_id
              union all
              select run_id from running_runs where session_id = r.session_id) as pending",
    looked_up!("runs", "pending.run_id", "b"),
    "   where b.session_no < r.session_no) as before,
       (select count(*) from running_runs x where x.tenant_id = r.tenant_id) as tenant_running
     from runs r",
    loaded_joins!(),
    " where r.id = $2 and s.tenant_id = $3 and ($4::uuid is null or s.created_by = $4)"
);

pub(super) async fn situation(
    conn: &mut PgConnection,
    clock: &StoreClock,
    seen: Visibility,
    run: RunId,
) -> Result<Option<Situation>, Error> {
    let row = sqlx::query(SITUATION)
        .bind(clock.given())
        .bind(run.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .fetch_optional(conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let loaded = Loaded::new(&row)?;
    if let Some(damage) = loaded.damage {
        return Err(damage);
    }
    let (before, tenant_running) = rows::around(&row)?;
    Ok(Some(Situation {
        run: loaded.run,
        before,
        tenant_running,
        standing: loaded.standing,
        now: loaded.now,
    }))
}

/// [`hango_domain::queue::census`], in SQL: a row for each tenant that is named, and one for all others, each
/// with the moments since when. `greatest` leaves out what is null. Parameters: 1 what stands in for the
/// database's time, 2 how many tenants are named.
pub(super) const CENSUS: &str = concat!(
    "with
     counts as (
         select tenant_id, sum(queued)::bigint as queued, sum(running)::bigint as running
         from (select tenant_id, count(*) as queued, 0 as running from queued_runs group by tenant_id
               union all
               select tenant_id, 0, count(*) from running_runs group by tenant_id) as of_each
         group by tenant_id
     ),
     ranked as (
         select *, row_number() over (order by queued + running desc, tenant_id) <= $2 as named
         from counts
     ),
     heads as (
         select q.run_id, q.session_id, q.session_no, greatest(q.available_at, t.updated_at) as since
         from queued_runs q",
    looked_up!("tenants", "q.tenant_id", "t"),
    "    where t.status = 'active'
           and (q.available_at is null or q.available_at <= coalesce($1, statement_timestamp()))
           and not exists (select from running_runs x where x.session_id = q.session_id)
           and not exists (
               select from queued_runs e
               where e.session_id = q.session_id and e.session_no < q.session_no)
     ),
     claimable as (
         select min(greatest(q.since, r.created_at, e.at, p.finished_at)) as since
         from heads q",
    looked_up!("runs", "q.run_id", "r"),
    "    left join lateral (
             select at from events
             where events.run_id = r.id and events.n = r.last_event offset 0) e on true
         left join lateral (
             select finished_at from runs
             where runs.session_id = q.session_id and runs.session_no < q.session_no
             order by runs.session_no desc limit 1) p on true
     ),
     started as (
         select min(r.started_at) as since
         from running_runs x",
    looked_up!("runs", "x.run_id", "r"),
    ")
     select case when named then tenant_id end as tenant_id,
         sum(queued)::bigint as queued, sum(running)::bigint as running,
         (select since from claimable) as claimable_since,
         (select since from started) as running_since,
         coalesce($1, statement_timestamp()) as now
     from ranked
     group by case when named then tenant_id end, named
     order by named desc, sum(queued) + sum(running) desc, 1"
);

pub(super) async fn census(
    conn: &mut PgConnection,
    clock: &StoreClock,
    most_tenants: u32,
) -> Result<Census, Error> {
    let found = sqlx::query(CENSUS)
        .bind(clock.given())
        .bind(i64::from(most_tenants))
        .fetch_all(conn)
        .await?;
    rows::census(&found)
}

//! Runs among the others that have not ended: one of them with all that its state depends on, and how many
//! there are.

use hango_domain::access::Visibility;
use hango_domain::{RunId, Timestamp};
use hango_ports::run_store::{Census, Situation};
use sqlx::sqlite::SqlitePool;

use crate::error::Error;
use crate::rows::{self, run_columns};

/// A run that the caller sees, with what [`Situation`] has beside it.
pub(super) const SITUATION: &str = concat!(
    "select ",
    run_columns!(),
    ", s.created_by as session_created_by, \
       u.status as creator_status, u.role as creator_role, t.status as tenant_status,
       (select json_group_array(b.id) from (
            select e.id from runs e indexed by runs_pending
            where e.session_id = r.session_id and e.state in ('queued', 'running')
              and e.session_no < r.session_no
            order by e.session_no) b) as before,
       (select count(*) from runs q indexed by runs_running
        where q.tenant_id = r.tenant_id and q.state = 'running') as tenant_running
     from runs r
     join sessions s on s.id = r.session_id
     join users u on u.id = r.created_by
     join tenants t on t.id = r.tenant_id
     where r.id = ?1 and s.tenant_id = ?2 and (?3 is null or s.created_by = ?3)"
);

pub(super) async fn situation(
    readers: &SqlitePool,
    seen: Visibility,
    run: RunId,
    now: Timestamp,
) -> Result<Option<Situation>, Error> {
    let row = sqlx::query(SITUATION)
        .bind(run.to_string())
        .bind(seen.tenant.to_string())
        .bind(seen.creator.map(|user| user.to_string()))
        .fetch_optional(readers)
        .await?;
    row.map(|row| rows::situation(&row, now)).transpose()
}

/// [`hango_domain::queue::census`], in SQL: a row for each tenant that is named, and one for all others, each
/// with the moments since when. Parameters: 1 the moment, 2 how many tenants are named.
pub(super) const CENSUS: &str = "
    with
    counts (tenant_id, queued, running) as (
        select tenant_id, sum(queued), sum(running) from (
            select tenant_id, count(*) as queued, 0 as running
            from runs indexed by runs_queued where state = 'queued' group by tenant_id
            union all
            select tenant_id, 0, count(*)
            from runs indexed by runs_running where state = 'running' group by tenant_id)
        group by tenant_id
    ),
    ranked as (
        select *, row_number() over (order by queued + running desc, tenant_id) <= ?2 as named
        from counts
    ),
    claimable (since) as materialized (
        select min(max(
            (select at from events where run_id = q.id and n = q.last_event),
            t.updated_at,
            coalesce(q.available_at, q.created_at),
            coalesce((select p.finished_at from runs p indexed by runs_of_session
                      where p.session_id = q.session_id and p.session_no < q.session_no
                      order by p.session_no desc limit 1), q.created_at)))
        from runs q indexed by runs_queued
        join tenants t on t.id = q.tenant_id and t.status = 'active'
        where q.state = 'queued' and (q.available_at is null or q.available_at <= ?1)
          and not exists (
              select 1 from runs e indexed by runs_pending
              where e.session_id = q.session_id and e.state in ('queued', 'running')
                and (e.session_no < q.session_no or e.state = 'running'))
    ),
    started (since) as materialized (
        select min(started_at) from runs indexed by runs_running where state = 'running'
    )
    select case when named then tenant_id end as tenant_id,
        sum(queued) as queued, sum(running) as running,
        (select since from claimable) as claimable_since,
        (select since from started) as running_since
    from ranked
    group by case when named then tenant_id end, named
    order by named desc, sum(queued) + sum(running) desc, 1";

pub(super) async fn census(
    readers: &SqlitePool,
    most_tenants: u32,
    now: Timestamp,
) -> Result<Census, Error> {
    let found = sqlx::query(CENSUS)
        .bind(now.as_micros())
        .bind(most_tenants)
        .fetch_all(readers)
        .await?;
    rows::census(&found, now)
}

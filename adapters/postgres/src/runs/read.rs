//! Reading runs, their events and their journals, for a caller who may not see them.

use hango_domain::RunId;
use hango_domain::access::Visibility;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::run::{Run, RunStatus};
use hango_ports::page::{Page, PageRequest};
use hango_ports::run_store::RunFilter;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use crate::error::Error;
use crate::pages::{behind, one_more};
use crate::rows::{self, ReadRun, integer, run_columns};
use crate::sessions::is_seen;

/// A run that the caller sees.
pub(super) const FIND: &str = concat!(
    "select ",
    run_columns!(),
    " from runs r join sessions s on s.id = r.session_id where r.id = $1 and ",
    is_seen!("$2", "$3")
);

/// A run that the caller sees.
pub(super) async fn find(
    conn: &mut PgConnection,
    seen: Visibility,
    run: RunId,
) -> Result<Option<Run>, Error> {
    let row = sqlx::query(FIND)
        .bind(run.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .fetch_optional(conn)
        .await?;
    row.map(|row| rows::run(&row)?.whole()).transpose()
}

/// A list of `$runs`, which all are of the tenant. What is asked of each stands in a `case`, of which the
/// planner expects nothing: else it thinks that little will be left, and reads and sorts everything for
/// one page.
macro_rules! listed {
    ($runs:literal) => {
        concat!(
            "select ",
            run_columns!(),
            " from ",
            $runs,
            " join sessions s on s.id = r.session_id
             where r.tenant_id = $1
               and (r.created_at, r.id) < ($3, $4)
               and case when $2::uuid is null then true else s.created_by = $2 end
               and case when cardinality($5::text[]) = 0 then true else r.state = any($5) end
               and case when $6::uuid is null then true else r.agent_id = $6 end
               and case when $7::uuid is null then true else r.session_id = $7 end
             order by r.created_at desc, r.id desc
             limit $8"
        )
    };
}

/// Of a tenant, newest first.
pub(super) const LIST: &str = listed!("runs r");

/// Of a session: a subquery that is read for itself, so that the session decides which index serves it.
pub(super) const LIST_OF_SESSION: &str =
    listed!("(select * from runs where runs.session_id = $7 offset 0) r");

/// Of what has not ended.
pub(super) const LIST_PENDING: &str = listed!(
    "(select run_id from queued_runs where tenant_id = $1
      union all
      select run_id from running_runs where tenant_id = $1) as pending
      cross join lateral (select * from runs where runs.id = pending.run_id offset 0) r"
);

/// Runs that the caller sees, newest first, without those that cannot be read.
pub(super) async fn list(
    conn: &mut PgConnection,
    seen: Visibility,
    filter: &RunFilter,
    page: PageRequest,
) -> Result<Page<Run>, Error> {
    let pending = |state: &RunStatus| !state.is_terminal();
    let statement = if filter.session.is_some() {
        LIST_OF_SESSION
    } else if !filter.states.is_empty() && filter.states.iter().all(pending) {
        LIST_PENDING
    } else {
        LIST
    };
    let states: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
    let rows = sqlx::query(statement)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .bind(behind(page).0)
        .bind(behind(page).1)
        .bind(states)
        .bind(filter.agent.map(|agent| agent.0))
        .bind(filter.session.map(|session| session.0))
        .bind(one_more(page))
        .fetch_all(conn)
        .await?;
    let rows = rows::all(&rows, |row| Ok((rows::position(row)?, readable(row)?)))?;
    let page = Page::of(rows, page.limit, |(position, _)| *position);
    Ok(Page {
        items: page.items.into_iter().filter_map(|(_, run)| run).collect(),
        next: page.next,
    })
}

/// A run; `None` for one that cannot be read: a list goes on without it.
fn readable(row: &PgRow) -> Result<Option<Run>, Error> {
    match rows::run(row).and_then(ReadRun::whole) {
        Ok(run) => Ok(Some(run)),
        Err(error @ Error::Unreadable { .. }) => {
            tracing::error!(%error, "a run is left out of a list");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What belongs to a run that the caller sees: its row, and for each row of `$rows` one with that.
macro_rules! of_seen_run {
    ($rows:literal) => {
        concat!(
            "select it.* from runs r
             join sessions s on s.id = r.session_id
             left join lateral (",
            $rows,
            ") it on true where r.id = $1 and ",
            is_seen!("$2", "$3")
        )
    };
}

/// The events of a run behind number 4, at most 5 of its rows.
pub(super) const EVENTS: &str = concat!(
    of_seen_run!(
        "select run_id, n, attempt, version, at, told from events
         where run_id = r.id and n > $4
         order by n
         limit $5"
    ),
    " order by it.n"
);

/// At most `limit` events of a run behind a number, in order; `None` where the caller sees no such run.
/// The first row may have some that are not behind it, the last one some too many.
pub(super) async fn events(
    conn: &mut PgConnection,
    seen: Visibility,
    run: RunId,
    after: u64,
    limit: u32,
) -> Result<Option<Vec<Event>>, Error> {
    let rows = sqlx::query(EVENTS)
        .bind(run.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .bind(integer(after))
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await?;
    let told = rows::under(&rows, "run_id", rows::events)?;
    Ok(told.map(|told| {
        let behind = told.into_iter().flatten().filter(|event| event.n > after);
        behind.take(limit as usize).collect()
    }))
}

/// The journal of a run.
pub(super) const TOOL_CALLS: &str = concat!(
    of_seen_run!(
        "select id, run_id, turn, position, tool_use_id, name, input, invalid_input, state, \
             executions, result, started_at, finished_at
         from tool_calls
         where run_id = r.id"
    ),
    " order by it.turn, it.position"
);

/// The journal of a run, by turn and position; `None` where the caller sees no such run.
pub(super) async fn tool_calls(
    conn: &mut PgConnection,
    seen: Visibility,
    run: RunId,
) -> Result<Option<Vec<ToolCall>>, Error> {
    let rows = sqlx::query(TOOL_CALLS)
        .bind(run.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .fetch_all(conn)
        .await?;
    rows::under(&rows, "id", rows::tool_call)
}

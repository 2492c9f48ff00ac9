//! Reading runs and their events.

use hango_domain::RunId;
use hango_domain::access::Visibility;
use hango_domain::agent::AgentSnapshot;
use hango_domain::event::Event;
use hango_domain::run::{Run, RunStatus};
use hango_ports::page::{Page, PageRequest};
use hango_ports::run_store::{MAX_LIFE, RunFilter, Story, is_of_life};
use sqlx::sqlite::{SqliteExecutor, SqlitePool, SqliteRow};
use sqlx::types::Json;

use crate::audit::{behind, one_more};
use crate::error::Error;
use crate::rows::{self, Columns, ReadRun, integer, run_columns};

/// A run that the caller sees.
pub(crate) async fn find<'e>(
    executor: impl SqliteExecutor<'e>,
    seen: Visibility,
    run: RunId,
) -> Result<Option<Run>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        run_columns!(),
        " from runs r join sessions s on s.id = r.session_id
         where r.id = ?1 and s.tenant_id = ?2 and (?3 is null or s.created_by = ?3)"
    ))
    .bind(run.to_string())
    .bind(seen.tenant.to_string())
    .bind(seen.creator.map(|user| user.to_string()))
    .fetch_optional(executor)
    .await?;
    row.map(|row| rows::run(&row)?.whole()).transpose()
}

/// Whether the caller sees the run.
pub(crate) async fn is_seen<'e>(
    executor: impl SqliteExecutor<'e>,
    seen: Visibility,
    run: RunId,
) -> Result<bool, Error> {
    let found: Option<String> = sqlx::query_scalar(
        "select r.id from runs r join sessions s on s.id = r.session_id
         where r.id = ?1 and s.tenant_id = ?2 and (?3 is null or s.created_by = ?3)",
    )
    .bind(run.to_string())
    .bind(seen.tenant.to_string())
    .bind(seen.creator.map(|user| user.to_string()))
    .fetch_optional(executor)
    .await?;
    Ok(found.is_some())
}

/// A list of runs that is read from an index, which serves what it `also` asks of each. Parameter 5 is
/// a JSON array.
macro_rules! listed {
    ($index:literal, $also:literal) => {
        concat!(
            "select ",
            run_columns!(),
            " from runs r indexed by ",
            $index,
            " join sessions s on s.id = r.session_id
             where r.tenant_id = ?1
               and (?2 is null or s.created_by = ?2)
               and (r.created_at, r.id) < (?3, ?4)
               and (?5 = '[]' or r.state in (select value from json_each(?5)))
               and (?6 is null or r.agent_id = ?6)
               and (?7 is null or r.session_id = ?7)",
            $also,
            " order by r.created_at desc, r.id desc
             limit ?8"
        )
    };
}

/// Runs that the caller sees, newest first, without those that cannot be read.
pub(crate) async fn list(
    readers: &SqlitePool,
    seen: Visibility,
    filter: &RunFilter,
    page: PageRequest,
) -> Result<Page<Run>, Error> {
    let pending = |state: &RunStatus| !state.is_terminal();
    let statement = if filter.session.is_some() {
        listed!("runs_of_session", " and r.session_id = ?7")
    } else if !filter.states.is_empty() && filter.states.iter().all(pending) {
        listed!("runs_pending", " and r.state in ('queued', 'running')")
    } else {
        listed!("runs_by_age", "")
    };
    let states: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
    let rows = sqlx::query(statement)
        .bind(seen.tenant.to_string())
        .bind(seen.creator.map(|user| user.to_string()))
        .bind(behind(page).0)
        .bind(behind(page).1)
        .bind(Json(states))
        .bind(filter.agent.map(|agent| agent.to_string()))
        .bind(filter.session.map(|session| session.to_string()))
        .bind(one_more(page))
        .fetch_all(readers)
        .await?;
    let rows = rows::all(&rows, |row| Ok((rows::position(row)?, readable(row)?)))?;
    let page = Page::of(rows, page.limit, |(position, _)| *position);
    Ok(Page {
        items: page.items.into_iter().filter_map(|(_, run)| run).collect(),
        next: page.next,
    })
}

/// A run; `None` for one that cannot be read: a list goes on without it.
fn readable(row: &SqliteRow) -> Result<Option<Run>, Error> {
    match rows::run(row).and_then(ReadRun::whole) {
        Ok(run) => Ok(Some(run)),
        Err(error @ Error::Unreadable { .. }) => {
            tracing::error!(%error, "a run is left out of a list");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// At most `limit` events of a run behind a number, in order.
pub(crate) async fn events<'e>(
    executor: impl SqliteExecutor<'e>,
    run: RunId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, Error> {
    let rows = sqlx::query(
        "select run_id, n, turn, attempt, at, version, kind from events
         where run_id = ? and n > ?
         order by n
         limit ?",
    )
    .bind(run.to_string())
    .bind(integer(after))
    .bind(limit)
    .fetch_all(executor)
    .await?;
    rows::all(&rows, rows::event)
}

/// The agent as it was when the run was accepted.
pub(crate) async fn agent_snapshot<'e>(
    executor: impl SqliteExecutor<'e>,
    run: RunId,
) -> Result<AgentSnapshot, Error> {
    let row = sqlx::query("select id, agent_snapshot from runs where id = ?")
        .bind(run.to_string())
        .fetch_one(executor)
        .await?;
    rows::agent_snapshot(&row)
}

/// What is told of a run that nobody holds.
pub(crate) async fn story(readers: &SqlitePool, run: RunId) -> Result<Option<Story>, Error> {
    let mut conn = readers.acquire().await?;
    let row = sqlx::query(concat!(
        "select ",
        run_columns!(),
        ", (select count(*) from tool_calls c where c.run_id = r.id) as tool_calls
         from runs r where r.id = ?"
    ))
    .bind(run.to_string())
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let told = sqlx::query(
        "select run_id, n, turn, attempt, at, version, kind from events
         where run_id = ?1
           and kind ->> 'type' in ('run.started', 'run.requeued', 'turn.started')
         order by n desc
         limit ?2",
    )
    .bind(run.to_string())
    .bind(i64::try_from(MAX_LIFE).unwrap_or(i64::MAX))
    .fetch_all(&mut *conn)
    .await?;
    let mut life = rows::all(&told, rows::event)?;
    // What a newer build told under these names is not of this life's format.
    life.retain(|event| is_of_life(&event.kind));
    life.reverse();
    Ok(Some(Story {
        run: rows::run(&row)?.whole()?,
        agent: agent_snapshot(&mut *conn, run).await?,
        life,
        tool_calls: Columns::new(&row, "runs", "id").number("tool_calls")?,
    }))
}

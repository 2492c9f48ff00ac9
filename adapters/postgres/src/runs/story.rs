//! What is told of a run that nobody holds: read by the engine alone, and only where somebody listens.

use hango_domain::RunId;
use hango_domain::event::Event;
use hango_ports::run_store::{MAX_LIFE, Story, is_of_life};
use sqlx::PgConnection;

use crate::error::Error;
use crate::rows::{self, Columns, run_columns};

/// A run with the agent as it was when the run was accepted.
const RUN: &str = concat!(
    "select ",
    run_columns!(),
    ", a.snapshot, a.agent_id as snapshot_of,
         (select count(*) from tool_calls c where c.run_id = r.id) as tool_calls
     from runs r
     left join agent_snapshots a on a.agent_id = r.agent_id and a.version = r.agent_version
     where r.id = $1"
);

/// What the run told last of its life; most rows tell of what happened within a turn.
const LIFE: &str = "select run_id, n, attempt, version, at, told from events
     where run_id = $1
       and (told::jsonb @> '[{\"type\": \"run.started\"}]'
         or told::jsonb @> '[{\"type\": \"run.requeued\"}]'
         or told::jsonb @> '[{\"type\": \"turn.started\"}]')
     order by n desc
     limit $2";

pub(super) async fn story(conn: &mut PgConnection, run: RunId) -> Result<Option<Story>, Error> {
    let row = sqlx::query(RUN)
        .bind(run.0)
        .fetch_optional(&mut *conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let most = i64::try_from(MAX_LIFE).unwrap_or(i64::MAX);
    let told = sqlx::query(LIFE)
        .bind(run.0)
        .bind(most)
        .fetch_all(conn)
        .await?;
    let told = rows::all(&told, rows::events)?;
    let life = told.into_iter().rev().flatten();
    let mut life: Vec<Event> = life.filter(|event| is_of_life(&event.kind)).collect();
    life.drain(..life.len().saturating_sub(MAX_LIFE));
    Ok(Some(Story {
        agent: rows::agent_snapshot(&row)?,
        run: rows::run(&row)?.whole()?,
        life,
        tool_calls: Columns::new(&row, "runs", "id").big_number("tool_calls")?,
    }))
}

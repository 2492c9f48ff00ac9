//! Rows of what is around runs.

use hango_domain::RunId;
use hango_domain::queue::{Census, Counts};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{Columns, now};
use crate::error::Error;

/// The runs before a run in its session, and how many of its tenant are running.
pub(crate) fn around(row: &PgRow) -> Result<(Vec<RunId>, u32), Error> {
    let columns = Columns::new(row, "runs", "id");
    let before: Vec<Uuid> = columns.get("before")?;
    let before = before.into_iter().map(RunId).collect();
    Ok((before, columns.big_number("tenant_running")?))
}

/// All rows of a census; there are none where there is nothing to count.
pub(crate) fn census(rows: &[PgRow]) -> Result<Census, Error> {
    let mut census = Census::default();
    for row in rows {
        let columns = Columns::new(row, "queued_runs", "tenant_id");
        let now = now(row)?;
        let counts = Counts {
            queued: columns.big_number("queued")?,
            running: columns.big_number("running")?,
        };
        match columns.maybe_id("tenant_id")? {
            Some(tenant) => census.tenants.push((tenant, counts)),
            None => census.others = counts,
        }
        let since = |column| Ok::<_, Error>(columns.maybe_time(column)?.map(|at| now.since(at)));
        census.claimable_for = since("claimable_since")?;
        census.running_for = since("running_since")?;
    }
    Ok(census)
}

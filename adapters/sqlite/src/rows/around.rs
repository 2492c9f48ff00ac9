//! Rows of what is around runs.

use hango_domain::queue::{Census, Counts};
use hango_domain::{RunId, Timestamp};
use hango_ports::run_store::Situation;
use sqlx::sqlite::SqliteRow;

use super::{Columns, run, standing};
use crate::error::Error;

/// A run with all that its state depends on.
pub(crate) fn situation(row: &SqliteRow, now: Timestamp) -> Result<Situation, Error> {
    let columns = Columns::new(row, "runs", "id");
    let before: Vec<RunId> = columns.json("before")?;
    Ok(Situation {
        run: run(row)?.whole()?,
        before,
        tenant_running: columns.number("tenant_running")?,
        standing: standing(row)?,
        now,
    })
}

/// All rows of a census that was taken at `now`; there are none where there is nothing to count.
pub(crate) fn census(rows: &[SqliteRow], now: Timestamp) -> Result<Census, Error> {
    let mut census = Census::default();
    for row in rows {
        let columns = Columns::new(row, "runs", "tenant_id");
        let counts = Counts {
            queued: columns.number("queued")?,
            running: columns.number("running")?,
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

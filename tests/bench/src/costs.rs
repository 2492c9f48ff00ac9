//! What a run costs, counted: commits, bytes of the log, round trips, processor time. Counts do not
//! depend on how fast the machine is, nor on who else uses it.

mod breakdown;
mod idle;
mod leases;
mod runs;
mod window;

use crate::database::Database;
use crate::hango::Program;
use crate::report::Report;

/// Counts everything.
pub(crate) async fn count(
    program: &Program,
    database: &mut Database,
    runs: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    runs::on_postgres(program, database, runs, report).await?;
    runs::on_sqlite(program, database, runs, report).await?;
    idle::count(program, database, report).await?;
    leases::count(program, database, report).await
}

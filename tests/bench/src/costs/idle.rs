//! A process that has nothing to do: its processor time, and what it asks the database.

use std::time::Duration;

use super::leases::statements;
use crate::database::Database;
use crate::figures::{float, share};
use crate::goals;
use crate::hango::Program;
use crate::report::{Report, heading, number};
use crate::stand::{Stand, Store};
use crate::wire::Wire;

/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(30);

/// How long it gets to come to rest.
const REST: Duration = Duration::from_secs(3);

pub(super) async fn count(
    program: &Program,
    database: &mut Database,
    report: &mut Report,
) -> anyhow::Result<()> {
    heading("An idle process");
    database.begin_anew().await?;
    let wire = Wire::open(database.port()).await?;
    let url = database.url(wire.port());
    let on_postgres = Stand::on(&program.with(&[("HANGO_DATABASE_URL", &url)]), 1).await?;
    let on_sqlite = Stand::on(program, 1).await?;
    tokio::time::sleep(REST).await;

    let (before, counted) = ((on_postgres.cpu()?, on_sqlite.cpu()?), wire.counted());
    tokio::time::sleep(WATCHED).await;
    let counted = wire.counted() - &counted;
    for (store, stand, before) in [
        (Store::Postgres(1), &on_postgres, before.0),
        (Store::Sqlite, &on_sqlite, before.1),
    ] {
        let used = (stand.cpu()? - before).time();
        let percent = 100.0 * share(used.as_secs_f64(), WATCHED.as_secs_f64());
        report.note(goals::IDLE_CPU, &store.place(), percent);
    }
    let each_second = share(float(counted.all().trips), WATCHED.as_secs_f64());
    report.note(
        goals::IDLE_STATEMENTS,
        &Store::Postgres(1).place(),
        each_second,
    );
    println!(
        "With every setting at its default: {} round trips a second.\n",
        number(each_second)
    );
    statements(&counted, WATCHED);
    on_postgres.stop()?;
    on_sqlite.stop()
}

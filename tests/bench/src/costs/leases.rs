//! Runs that wait for their provider: what it costs to keep their leases.

use std::time::Duration;

use super::breakdown;
use crate::database::Database;
use crate::figures::{each, float, share};
use crate::goals;
use crate::hango::Program;
use crate::provider::Model;
use crate::report::{Report, Table, heading, number};
use crate::stand::{Stand, Store};
use crate::wire::{Counted, Kind, Wire, kind_of, shown};

/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(15);

/// Beats that come before, after a checkpoint, so that few pages are written whole.
const BEFORE: Duration = Duration::from_secs(3);

/// A beat a second. The sweep and the poll come as often as they do in relation to usual leases.
const SETTINGS: [(&str, &str); 5] = [
    ("HANGO_RUN_WORKERS", "600"),
    ("HANGO_RUN_LEASE_TTL", "30s"),
    ("HANGO_RUN_HEARTBEAT_INTERVAL", "1s"),
    ("HANGO_RUN_RECLAIM_INTERVAL", "1s"),
    ("HANGO_RUN_POLL_INTERVAL", "1s"),
];

/// A provider that answers when everything has been measured.
const PATIENT: Model = Model::slow(Duration::from_mins(10));

/// How a renewal is known.
const RENEWAL: &str = "set lease_expires_at";

pub(super) async fn count(
    program: &Program,
    database: &mut Database,
    report: &mut Report,
) -> anyhow::Result<()> {
    let place = Store::Postgres(1).place();
    for runs in [100, 500] {
        heading(&format!("{runs} waiting runs, a beat a second"));
        database.begin_anew().await?;
        let wire = Wire::open(database.port()).await?;
        let url = database.url(wire.port());
        let settings = [&SETTINGS[..], &[("HANGO_DATABASE_URL", &url)]].concat();
        let mut stand = Stand::on(&program.with(&settings), 1).await?;
        let sessions = stand.sessions(PATIENT, runs).await?;
        stand.start_all(&sessions).await?;
        stand.all_asked(runs).await?;
        database.checkpoint().await?;
        tokio::time::sleep(BEFORE).await;

        let (from, cpu, before) = (database.counters().await?, stand.cpu()?, wire.counted());
        tokio::time::sleep(WATCHED).await;
        let counted = wire.counted() - &before;
        let (to, used) = (database.counters().await?, (stand.cpu()? - cpu).time());
        let wal = database.wal_between(&from, &to).await?;

        let beats = renewals(&counted);
        let renewed = usize::try_from(beats)? * runs;
        let (_, files) = database.tables().await?;
        // A checkpoint may fall into it, and an `analyze`: neither is the renewals' own.
        let others = wal.images + wal.of_catalogs(&files);
        let own = each(wal.bytes.saturating_sub(others), renewed);
        println!(
            "{beats} renewals of {runs} runs: {} bytes of the log for each run and beat, and {} of \
             images of pages; {} ms of the database and {} ms of hango a beat.\n",
            number(own),
            number(each(wal.images, renewed)),
            number(share(
                (to.cpu - from.cpu).time().as_secs_f64() * 1e3,
                float(beats)
            )),
            number(share(used.as_secs_f64() * 1e3, float(beats))),
        );
        breakdown::renewals(&wal, renewed, &files);
        statements(&counted, WATCHED);
        let place = format!("{place}, {runs} runs");
        report.note(goals::RENEWAL_WAL, &place, own);
        if runs == 500 {
            let trips = float(counted.of(Kind::Lease).trips);
            let each_second = share(trips, WATCHED.as_secs_f64());
            report.note(goals::LEASE_STATEMENTS, &place, each_second);
        }
        for hango in stand.processes {
            hango.kill()?;
        }
    }
    Ok(())
}

fn renewals(counted: &Counted) -> u64 {
    counted
        .shapes()
        .filter(|(shape, _)| shape.iter().any(|statement| statement.contains(RENEWAL)))
        .map(|(_, times)| times.transactions)
        .sum()
}

/// Prints what was asked of the database.
pub(super) fn statements(counted: &Counted, watched: Duration) {
    let mut table = Table::new(["kind", "a second", "round trips", "statements"]);
    for (shape, times) in counted.shapes() {
        let statements: Vec<_> = shape.iter().map(|statement| shown(statement)).collect();
        table.row([
            &format!("{:?}", kind_of(shape)),
            &number(share(float(times.transactions), watched.as_secs_f64())),
            &number(share(float(times.trips), float(times.transactions))),
            &statements.join("; "),
        ]);
    }
    table.print();
}

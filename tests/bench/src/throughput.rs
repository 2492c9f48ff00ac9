//! How fast it is, on each store: how long one run takes where nothing else happens, how many there are
//! in a second where many are in flight, how a crowd of slow ones does, and the memory that it takes.
//!
//! These are times of this machine, whose processors the client, the provider and the database share
//! with hango: what each of them used is told beside, and what the disk can do.

use std::time::{Duration, Instant};

use futures::future::try_join_all;

use crate::database::Database;
use crate::figures::{float, millis, percentile, share};
use crate::goals;
use crate::hango::Program;
use crate::machine;
use crate::provider::Model;
use crate::report::{Report, Table, heading, number};
use crate::stand::{Stand, Store};

/// How many runs are in flight.
const IN_FLIGHT: usize = 32;

/// Sessions for them: enough that none has two runs at a time, nor many one after the other.
const SESSIONS: usize = 1_024;

/// Runs that come before.
const BEFORE: usize = 20;

/// Runs that are timed one by one.
const ONE_BY_ONE: usize = 300;

/// The crowd, and how long its provider thinks.
const CROWD: usize = 200;
const THINKS: Duration = Duration::from_secs(1);

/// Runs in flight whose memory is looked at.
const HELD: usize = 500;

/// Measures all of it, `repeats` times.
pub(crate) async fn measure(
    program: &Program,
    database: &mut Database,
    stores: &[Store],
    repeats: usize,
    window: Duration,
    report: &mut Report,
) -> anyhow::Result<()> {
    for repeat in 1..=repeats {
        heading(&format!("Throughput, {repeat} of {repeats}"));
        println!(
            "Load of the machine {}; the smallest durable commits, a second: {} by one client, {} by \
             {IN_FLIGHT}.\n",
            machine::load()?,
            number(database.commits_per_second(1).await?),
            number(database.commits_per_second(IN_FLIGHT).await?),
        );
        for store in stores {
            let settings = [("HANGO_RUN_WORKERS", "512")];
            let mut stand = Stand::start(program, database, *store, &settings).await?;
            let place = store.place();
            rest(&stand, report, &place).await?;
            one_by_one(&mut stand, report, &place).await?;
            let mut table = Table::new([
                &format!("{place}: {IN_FLIGHT} in flight"),
                "runs/s",
                "turns/s",
                "ms a run, p50",
                "p99",
                "CPU of hango, %",
                "of the database, %",
                "of client and provider, %",
            ]);
            for (model, goal) in [
                (Model::TEXT, goals::TEXT_RUNS),
                (Model::TOOLS, goals::TURNS),
            ] {
                let sessions = stand.sessions(model, SESSIONS).await?;
                let flight = in_flight(&stand, database, &sessions, window).await?;
                let turns = flight.runs_per_second * float(model.tools + 1);
                flight.add_to(&mut table, &model.to_string(), turns);
                report.note(goal, &place, turns);
                if model == Model::TOOLS {
                    let thousand = |percent: f64| share(percent / 100.0, turns) * 1_000.0;
                    let place = format!("{place}, {IN_FLIGHT} in flight");
                    report.note(goals::OWN_CPU, &place, thousand(flight.own));
                    if *store != Store::Sqlite {
                        report.note(goals::DATABASE_CPU, &place, thousand(flight.database));
                    }
                }
            }
            table.print();
            crowd(&mut stand, report, &place).await?;
            held(&mut stand, report, &place).await?;
            for hango in stand.processes {
                hango.kill()?;
            }
        }
    }
    Ok(())
}

async fn rest(stand: &Stand, report: &mut Report, place: &str) -> anyhow::Result<()> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    report.note(goals::MEMORY_AT_REST, place, mebibytes(stand)?);
    Ok(())
}

/// Of the first process.
fn mebibytes(stand: &Stand) -> anyhow::Result<f64> {
    Ok(float(stand.processes[0].memory()?) / f64::from(1 << 20))
}

async fn one_by_one(stand: &mut Stand, report: &mut Report, place: &str) -> anyhow::Result<()> {
    let mut medians = Vec::new();
    for (model, runs) in [(Model::TEXT, ONE_BY_ONE), (Model::TOOLS, ONE_BY_ONE / 5)] {
        let sessions = stand.sessions(model, BEFORE + runs).await?;
        stand.one_by_one(&sessions[..BEFORE]).await?;
        let times = stand.one_by_one(&sessions[BEFORE..]).await?;
        let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
        println!(
            "{place}: one run at a time ({model}) takes {} ms, p99 {} ms.",
            number(millis(p50)),
            number(millis(p99))
        );
        medians.push(millis(p50));
        if model == Model::TEXT {
            report.note(goals::TO_TERMINAL_P50, place, millis(p50));
            report.note(goals::TO_TERMINAL_P99, place, millis(p99));
        }
    }
    println!();
    let turn = (medians[1] - medians[0]) / float(Model::TOOLS.tools);
    report.note(goals::TOOL_TURN, place, turn);
    Ok(())
}

/// What many at a time did.
struct Flight {
    runs_per_second: f64,
    times: Vec<Duration>,
    own: f64,
    database: f64,
    others: f64,
}

/// Keeps runs in flight for a while.
async fn in_flight(
    stand: &Stand,
    database: &Database,
    sessions: &[String],
    window: Duration,
) -> anyhow::Result<Flight> {
    let this = std::process::id();
    stand.one_by_one(&sessions[..BEFORE]).await?;
    let from = (stand.cpu()?, database.cpu()?, machine::cpu(this)?);
    let begun = Instant::now();
    let one_after_the_other = (0..IN_FLIGHT).map(|first| async move {
        let mut times = Vec::new();
        for n in (first..).step_by(IN_FLIGHT) {
            if begun.elapsed() >= window {
                break;
            }
            let session = &sessions[n % sessions.len()];
            // Each client keeps to one process, as behind a balancer that keeps connections.
            times.push(stand.api(first).run(session).await?);
        }
        anyhow::Ok(times)
    });
    let times = try_join_all(one_after_the_other).await?.concat();
    let seconds = begun.elapsed().as_secs_f64();
    let to = (stand.cpu()?, database.cpu()?, machine::cpu(this)?);
    let percent = |ticks: machine::Ticks| 100.0 * share(ticks.time().as_secs_f64(), seconds);
    Ok(Flight {
        runs_per_second: share(float(times.len()), seconds),
        times,
        own: percent(to.0 - from.0),
        database: percent(to.1 - from.1),
        others: percent(to.2 - from.2),
    })
}

impl Flight {
    fn add_to(&self, table: &mut Table, what: &str, turns: f64) {
        table.row([
            &what,
            &number(self.runs_per_second),
            &number(turns),
            &number(millis(percentile(&self.times, 0.5))),
            &number(millis(percentile(&self.times, 0.99))),
            &number(self.own),
            &number(self.database),
            &number(self.others),
        ]);
    }
}

/// Many runs at once, whose provider thinks.
async fn crowd(stand: &mut Stand, report: &mut Report, place: &str) -> anyhow::Result<()> {
    let sessions = stand.sessions(Model::slow(THINKS), CROWD).await?;
    let begun = Instant::now();
    let runs = sessions.iter().enumerate();
    try_join_all(runs.map(|(n, session)| stand.api(n).run(session))).await?;
    report.note(goals::CROWD, place, begun.elapsed().as_secs_f64());
    Ok(())
}

/// The memory of the first process, with its share of the runs in flight.
async fn held(stand: &mut Stand, report: &mut Report, place: &str) -> anyhow::Result<()> {
    let patient = Model::slow(Duration::from_mins(10));
    let sessions = stand.sessions(patient, HELD).await?;
    stand.start_all(&sessions).await?;
    stand.all_asked(HELD).await?;
    report.note(goals::MEMORY_IN_FLIGHT, place, mebibytes(stand)?);
    Ok(())
}

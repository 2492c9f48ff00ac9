//! Between processes: how soon a run that one accepted is executed by another, and how soon one goes on
//! whose process was killed.

use std::time::{Duration, Instant};

use crate::database::Database;
use crate::figures::{millis, percentile};
use crate::goals;
use crate::hango::Program;
use crate::provider::{Model, Provider};
use crate::report::{Report, heading, number};

/// Runs that are handed over.
const HANDED: usize = 200;

/// Between two of them, so that they come one at a time.
const PAUSE: Duration = Duration::from_millis(20);

/// Processes that are killed.
const KILLED: usize = 8;

/// A lease, and the sweep.
const LEASE: Duration = Duration::from_secs(2);
const SETTINGS: [(&str, &str); 3] = [
    ("HANGO_RUN_LEASE_TTL", "2s"),
    ("HANGO_RUN_HEARTBEAT_INTERVAL", "600ms"),
    ("HANGO_RUN_RECLAIM_INTERVAL", "500ms"),
];

/// After so long something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures both.
pub(crate) async fn measure(
    program: &Program,
    database: &mut Database,
    report: &mut Report,
) -> anyhow::Result<()> {
    heading("Between processes");
    handed_over(program, database, report).await?;
    killed(program, database, report).await
}

async fn handed_over(
    program: &Program,
    database: &mut Database,
    report: &mut Report,
) -> anyhow::Result<()> {
    let provider = Provider::start().await?;
    let program = on(program, database, &provider).await?;
    let front = program.serve(&["--no-workers"])?;
    let _engine = program.serve(&["--no-api"])?;
    let api = front.api()?;
    api.create_agent(Model::TEXT).await?;
    let mut times = Vec::new();
    for _ in 0..HANDED {
        let session = api.open_session(Model::TEXT).await?;
        let mut asked = provider.watch();
        let begun = Instant::now();
        api.start_run(&session).await?;
        times.push(asked.next(PATIENCE).await?.saturating_duration_since(begun));
        tokio::time::sleep(PAUSE).await;
    }
    let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
    println!(
        "From POST at one process to the provider being asked by another: {} ms, p99 {} ms.\n",
        number(millis(p50)),
        number(millis(p99))
    );
    report.note(goals::HANDED_OVER, "PostgreSQL", millis(p99));
    Ok(())
}

async fn killed(
    program: &Program,
    database: &mut Database,
    report: &mut Report,
) -> anyhow::Result<()> {
    let provider = Provider::start().await?;
    let program = on(&program.with(&SETTINGS), database, &provider).await?;
    let front = program.serve(&["--no-workers"])?;
    let api = front.api()?;
    let patient = Model::slow(Duration::from_mins(10));
    api.create_agent(patient).await?;
    let mut executing = program.serve(&["--no-api"])?;
    let mut times = Vec::new();
    for _ in 0..KILLED {
        let session = api.open_session(patient).await?;
        let mut asked = provider.watch();
        let run = api.start_run(&session).await?;
        asked.next(PATIENCE).await?;
        let next = program.serve(&["--no-api"])?;
        let begun = Instant::now();
        executing.kill()?;
        times.push(asked.next(PATIENCE).await?.saturating_duration_since(begun));
        executing = next;
        api.cancel(&run).await?;
    }
    let all: Vec<_> = times
        .iter()
        .map(|time| number(time.as_secs_f64()))
        .collect();
    println!(
        "From kill -9 in a turn to the run going on, s: {}.\n",
        all.join(", ")
    );
    for time in times {
        let beyond = time.saturating_sub(LEASE).as_secs_f64();
        report.note(goals::RECOVERED, "PostgreSQL", beyond);
    }
    Ok(())
}

/// The program on a new database, with that provider.
async fn on(
    program: &Program,
    database: &mut Database,
    provider: &Provider,
) -> anyhow::Result<Program> {
    database.begin_anew().await?;
    let url = database.url(database.port());
    Ok(program.with(&[
        ("HANGO_DATABASE_URL", url.as_str()),
        ("HANGO_OPENAI_BASE_URL", provider.base_url()),
    ]))
}

//! What a text run costs, and each further turn with a tool: runs one at a time, while nothing else
//! happens.

use super::breakdown;
use super::window::{Pair, Window, window};
use crate::database::Database;
use crate::figures::{float, micros};
use crate::goals;
use crate::hango::Program;
use crate::provider::Model;
use crate::report::{Report, Table, heading, number};
use crate::stand::{Stand, Store};
use crate::wire::{Kind, Wire};

/// Neither renewals nor sweeps nor polls fall into the count.
const QUIET: [(&str, &str); 4] = [
    ("HANGO_RUN_LEASE_TTL", "1h"),
    ("HANGO_RUN_HEARTBEAT_INTERVAL", "20m"),
    ("HANGO_RUN_RECLAIM_INTERVAL", "20m"),
    ("HANGO_RUN_POLL_INTERVAL", "20m"),
];

/// Runs that come before, so that statements are prepared and pages have been written whole.
const BEFORE: usize = 20;

/// On PostgreSQL.
pub(super) async fn on_postgres(
    program: &Program,
    database: &mut Database,
    runs: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let place = Store::Postgres(1).place();
    heading(&format!("{place}: {runs} runs, one at a time"));
    database.begin_anew().await?;
    let wire = Wire::open(database.port()).await?;
    let url = database.url(wire.port());
    let settings = [&QUIET[..], &[("HANGO_DATABASE_URL", &url)]].concat();
    let mut stand = Stand::on(&program.with(&settings), 1).await?;
    database.checkpoint().await?;
    let text = stand.sessions(Model::TEXT, BEFORE + runs).await?;
    let tools = stand.sessions(Model::TOOLS, BEFORE + runs).await?;
    stand.one_by_one(&text[..BEFORE]).await?;
    stand.one_by_one(&tools[..BEFORE]).await?;
    database.settle().await;
    let text = window(&stand, database, &wire, &text[BEFORE..]).await?;
    let tools = window(&stand, database, &wire, &tools[BEFORE..]).await?;

    figures(&text, &tools, report, &place);
    breakdown::shapes(&text, &tools);
    stand.stop()?;
    let (updates, files) = database.tables().await?;
    breakdown::records(&text, &tools, &files);
    breakdown::statements(&text, &tools);
    breakdown::updates(&updates);
    for updates in updates.iter().filter(|it| it.table == "runs") {
        report.note(goals::HEAP_ONLY, &place, updates.percent());
    }
    Ok(())
}

fn figures(text: &Window, tools: &Window, report: &mut Report, place: &str) {
    let mut table = Table::new(["", "text run", "further tool turn"]);
    let mut add = |what: &str, figure: &dyn Fn(&Window) -> f64| {
        let pair = Pair {
            text: figure(text) / float(text.runs),
            tools: figure(tools) / float(tools.runs),
        };
        table.row([&what, &number(pair.text), &number(pair.turn())]);
        pair
    };
    let transactions = |kind| move |it: &Window| float(it.counted.of(kind).transactions);
    let trips = |kind| move |it: &Window| float(it.counted.of(kind).trips);

    let commits = add("commits (`xact_commit`)", &|it| {
        float(it.to.commits - it.from.commits)
    });
    let writers = add("… with something to write", &|it| {
        float(it.to.writers - it.from.writers)
    });
    add("… that look a key up", &transactions(Kind::Authentication));
    add(
        "… that only read, for the client",
        &transactions(Kind::Read),
    );
    add(
        "… that claim and find nothing",
        &transactions(Kind::EmptyClaim),
    );
    let round = add("round trips of what writes", &trips(Kind::Write));
    add("round trips of all", &|it| float(it.counted.all().trips));
    let wal = add("bytes of the log", &|it| float(it.wal.bytes));
    add("… images of pages among them", &|it| float(it.wal.images));
    let database = add("CPU of the database, µs", &|it| {
        micros((it.to.cpu - it.from.cpu).time())
    });
    let own = add("CPU of hango, µs", &|it| micros(it.own.time()));
    table.print();

    let writing = format!("{place}, with something to write");
    report.note(goals::TEXT_RUN_COMMITS, &writing, writers.text);
    report.note(
        goals::TEXT_RUN_COMMITS,
        &format!("{place}, all"),
        commits.text,
    );
    report.note(goals::TOOL_TURN_COMMITS, &writing, writers.turn());
    report.note(
        goals::TOOL_TURN_COMMITS,
        &format!("{place}, all"),
        commits.turn(),
    );
    report.note(goals::TEXT_RUN_WAL, place, wal.text);
    report.note(goals::TOOL_TURN_WAL, place, wal.turn());
    report.note(goals::TOOL_TURN_TRIPS, place, round.turn());
    cpu(
        report,
        &format!("{place}, one at a time"),
        Some(database),
        own,
    );
}

/// Of a thousand turns, as they come in runs with tools.
fn cpu(report: &mut Report, place: &str, database: Option<Pair>, own: Pair) {
    let turns = float(Model::TOOLS.tools + 1);
    let seconds = |pair: Pair| pair.tools / turns * 1_000.0 / 1e6;
    report.note(goals::OWN_CPU, place, seconds(own));
    if let Some(database) = database {
        report.note(goals::DATABASE_CPU, place, seconds(database));
    }
}

/// On SQLite, where only the processor's time can be counted.
pub(super) async fn on_sqlite(
    program: &Program,
    database: &mut Database,
    runs: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let place = Store::Sqlite.place();
    let mut stand = Stand::start(program, database, Store::Sqlite, &QUIET).await?;
    let mut used = Vec::new();
    for model in [Model::TEXT, Model::TOOLS] {
        let sessions = stand.sessions(model, BEFORE + runs).await?;
        stand.one_by_one(&sessions[..BEFORE]).await?;
        let before = stand.cpu()?;
        stand.one_by_one(&sessions[BEFORE..]).await?;
        used.push(micros((stand.cpu()? - before).time()) / float(runs));
    }
    let own = Pair {
        text: used[0],
        tools: used[1],
    };
    println!(
        "{place}: {} µs of the processor for a text run, {} for each further tool turn.\n",
        number(own.text),
        number(own.turn())
    );
    cpu(report, &format!("{place}, one at a time"), None, own);
    stand.stop()
}

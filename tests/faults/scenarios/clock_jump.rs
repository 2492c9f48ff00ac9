//! G14: clocks jump. That of a replica means nothing; that of the database makes leases end early or late,
//! and no run is executed twice for it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::fault::{Fault, Hits};
use crate::history::Expect;
use crate::moment::Moment;
use crate::report::Report;
use crate::world::{Outcome, Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "clock-jump",
    about: "G14: the clock of a replica jumps by an hour or runs ten times as fast; the database's jumps too",
    kinds: &[Kind::Postgres],
    also: &[Kind::Sqlite],
    takes: &[Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// What a replica's clock does, as libfaketime writes it.
const OF_A_REPLICA: [&str; 5] = ["+0", "+3600", "-3600", "+0 x10", "+0"];

/// What the database's clock does. Never an hour forward: that is a run's whole time.
const OF_THE_DATABASE: [&str; 3] = ["+0", "+120", "-3600"];

/// How long a clock stays as it is.
const STAYS: Duration = Duration::from_millis(2500);

async fn run(task: Task) -> anyhow::Result<Report> {
    let Some(library) = library() else {
        return Ok(Report::skipped(
            "libfaketime is not there; apt-get install libfaketime",
        ));
    };
    let jumped = jump(task, &library).await;
    tidy()?;
    jumped
}

async fn jump(task: Task, library: &Path) -> anyhow::Result<Report> {
    let of_a_replica = of_a_replica(task, library).await?;
    let mut report = of_a_replica.report;
    if task.kind == Kind::Postgres {
        let of_the_database = of_the_database(task, library).await?;
        report.add("the database's clock", of_the_database.report);
    }
    Ok(report)
}

/// The library, for programs with threads, where distributions have it.
fn library() -> Option<PathBuf> {
    let places = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut libraries = places.map(|place| place.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.exists())
}

/// Removes what the library leaves behind for processes that were killed.
fn tidy() -> anyhow::Result<()> {
    for entry in fs::read_dir("/dev/shm")?.flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let process = ["faketime_shm_", "sem.faketime_sem_"]
            .iter()
            .find_map(|kind| name.strip_prefix(kind)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Whoever was faster has done the same.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// A clock that can be set, for whoever is started with its variables.
struct Clock {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

impl Clock {
    fn new(library: &Path) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("hango-clock-").tempdir()?;
        // The database's server is somebody else.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let library = library.to_str().context("a path is text")?;
        let file = dir.path().join("clock");
        let file = file.to_str().context("a path is text")?;
        let variables = [
            ("LD_PRELOAD", library),
            ("FAKETIME_TIMESTAMP_FILE", file),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let clock = Self {
            variables: variables.into(),
            dir,
        };
        clock.set("+0")?;
        Ok(clock)
    }

    /// Sets it, at once for all who look at it.
    fn set(&self, to: &str) -> anyhow::Result<()> {
        let new = self.dir.path().join("new");
        fs::write(&new, to)?;
        fs::rename(new, self.dir.path().join("clock"))?;
        Ok(())
    }
}

async fn of_a_replica(task: Task, library: &Path) -> anyhow::Result<Outcome> {
    let clock = Clock::new(library)?;
    let setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    let world = World::start(setup).await?;
    let mut start = world.fleet.start_of(0);
    start.variables.extend(clock.variables.clone());
    world.fleet.kill(0).await?;
    world.fleet.start_as(0, &start).await?;
    let sessions = world.load.sessions(30).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(150),
        Dice::of(task.seed, "load"),
    );
    for to in OF_A_REPLICA {
        clock.set(to)?;
        tokio::time::sleep(STAYS).await;
    }
    drop(load);
    let mut outcome = world.finish(&Expect::SUCCESS).await?;
    // Nothing happened to anybody, as far as leases are concerned.
    let taken = outcome
        .story
        .runs
        .iter()
        .filter(|told| told.run["attempt"] != 1);
    let taken = taken.count();
    outcome.report.must_be_in_time(taken == 0, || {
        format!("goal: {taken} runs were claimed more than once")
    });
    Ok(outcome)
}

async fn of_the_database(task: Task, library: &Path) -> anyhow::Result<Outcome> {
    let clock = Clock::new(library)?;
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    setup.server.environment.clone_from(&clock.variables);
    // Due times are by a clock that jumps.
    setup.slots_are_free = false;
    let world = World::start(setup).await?;
    let sessions = world.load.sessions(30).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(150),
        Dice::of(task.seed, "load"),
    );
    for to in OF_THE_DATABASE {
        let at = Moment::now();
        world.fleet.hold_up(true);
        clock.set(to)?;
        world.fleet.hold_up(false);
        world.fleet.note(Fault {
            what: "clock jump",
            from: at,
            until: at,
            // What it costs is not judged: no clock can be trusted.
            hits: Hits::Everybody,
            held: Vec::new(),
        });
        tokio::time::sleep(STAYS).await;
    }
    drop(load);
    let expect = Expect {
        one_clock: false,
        ..Expect::SUCCESS
    };
    world.finish(&expect).await
}

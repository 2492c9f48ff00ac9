//! G20: there is no room left for the database, and then there is again.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use hango_test_database::Guardian;
use tempfile::TempDir;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::fault::{Fault, Hits};
use crate::history::Expect;
use crate::moment::Moment;
use crate::plan::Shape;
use crate::report::Report;
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "disk-full",
    about: "G20: the database's disk is full, and then it is not; needs root",
    kinds: &[Kind::Sqlite, Kind::Postgres],
    also: &[],
    takes: &[Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// The whole disk.
const DISK: usize = 32 << 20;

/// What is left to be filled.
const ROOM: usize = 5 << 20;

/// How much a run brings with it.
const INPUT: usize = 60 << 10;

/// How long the disk stays full.
const STAYS: Duration = Duration::from_secs(3);

async fn run(task: Task) -> anyhow::Result<Report> {
    let Some(disk) = Disk::new()? else {
        return Ok(Report::skipped("only root can make a small disk"));
    };
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    setup.data = Some(disk.data()?);
    setup.shape = Shape {
        turns: 1,
        ..Shape::STORM
    };
    // Nobody can claim what cannot be written.
    setup.slots_are_free = false;
    let world = World::start(setup).await?;
    let sessions = world.load.sessions(60).await?;
    disk.fill()?;

    let from = Moment::now();
    let mut dice = Dice::of(task.seed, "inputs");
    let begun = Instant::now();
    let mut n = 0;
    let is_full = || world.client.log().refusals("insufficient_storage") > 0;
    while !is_full() {
        ensure!(
            begun.elapsed() < Duration::from_mins(1),
            "the disk is not full after {n} runs"
        );
        n += 1;
        let name = format!("{} run {n}", dice.text(INPUT));
        drop(world.load.begin_as(&sessions[n % sessions.len()], &name));
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    world.fleet.hold_up(true);
    tokio::time::sleep(STAYS).await;
    disk.clear()?;
    world.fleet.hold_up(false);
    world.fleet.note(Fault {
        what: "full disk",
        from,
        until: Moment::now(),
        hits: Hits::Everybody,
        held: Vec::new(),
    });

    let back = Instant::now();
    let session = &sessions[0];
    let last = world.load.begin_as(session, "the last one").await?;
    let back = back.elapsed();
    world.settle().await;
    let broken = world.facts.integrity().await?;

    let mut outcome = world.finish(&Expect::SUCCESS).await?;
    let refusals = outcome.story.clients.refusals("insufficient_storage");
    let report = &mut outcome.report;
    report.line(
        "full",
        format!("after {n} runs; {refusals} times insufficient_storage"),
    );
    report.line(
        "room again",
        format!(
            "a run asked for then ended after {:.1} s",
            back.as_secs_f64()
        ),
    );
    report.must(last.is_some(), || {
        "goal: nothing is executed although there is room".to_owned()
    });
    report.must(broken.is_empty(), || {
        format!("goal: the file is damaged: {broken:?}")
    });
    Ok(outcome.report)
}

/// What takes a disk away; whoever still has a file there keeps it until he ends.
const LIFE: &str = "cat >/dev/null; umount -l \"$1\"";

/// A small disk. It is taken away when it is dropped, or the harness ends.
struct Disk {
    _guardian: Guardian,
    dir: TempDir,
}

impl Disk {
    /// Makes one; `None` for whoever may not.
    fn new() -> anyhow::Result<Option<Self>> {
        let dir = tempfile::Builder::new().prefix("hango-disk-").tempdir()?;
        if fs::metadata(dir.path())?.uid() != 0 {
            return Ok(None);
        }
        let size = format!("size={DISK}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(dir.path())
            .status()?;
        ensure!(mounted.success(), "a small disk could not be mounted");
        let arguments = [dir.path().as_os_str()];
        Ok(Some(Self {
            _guardian: Guardian::start(Command::new("sh"), LIFE, &arguments)?,
            dir,
        }))
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A directory on it that the database's server may use, whoever that is.
    fn data(&self) -> anyhow::Result<PathBuf> {
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o755))?;
        let data = self.path().join("data");
        fs::create_dir(&data)?;
        chown(&data, Some(65534), Some(65534))?;
        Ok(data)
    }

    /// Takes all room but a little.
    fn fill(&self) -> anyhow::Result<()> {
        let used = Command::new("du").args(["-sb"]).arg(self.path()).output()?;
        let used = String::from_utf8(used.stdout)?;
        let used: usize = used.split_whitespace().next().unwrap_or("0").parse()?;
        let ballast = vec![0; DISK.saturating_sub(used + ROOM)];
        fs::write(self.path().join("ballast"), ballast)?;
        Ok(())
    }

    /// Gives the room back.
    fn clear(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.path().join("ballast"))?)
    }
}

//! G20: there is no room left for the database, and then there is again.
//!
//! On PostgreSQL twice: its tables alone are on the full disk, or all of it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use hango_test_database::Guardian;
use tempfile::TempDir;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::{Kind, Place};
use crate::dice::Dice;
use crate::fault::{Fault, Hits};
use crate::history::Expect;
use crate::moment::Moment;
use crate::plan::Shape;
use crate::report::{Report, seconds};
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "disk-full",
    about: "G20: the database's disk is full, and then it is not; needs root",
    kinds: &[Kind::Sqlite, Kind::Postgres],
    also: &[],
    takes: &[Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// What is left to be filled.
const ROOM: usize = 5 << 20;

/// How much a run brings with it.
const INPUT: usize = 60 << 10;

/// How long the disk stays full.
const STAYS: Duration = Duration::from_secs(3);

/// What is on the small disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum On {
    /// A file.
    File,
    /// A server's tables. It lives on, and refuses what needs more of them.
    Tables,
    /// All of a server, its log too. It ends when it cannot write that, and whoever looks after it has to
    /// start it when there is room again.
    Cluster,
}

impl On {
    /// The whole disk: a new server takes a third of it.
    const fn size(self) -> usize {
        match self {
            Self::File | Self::Tables => 32 << 20,
            Self::Cluster => 96 << 20,
        }
    }
}

async fn run(task: Task) -> anyhow::Result<Report> {
    if task.kind == Kind::Sqlite {
        return fill(task, On::File).await;
    }
    let both = (fill(task, On::Tables), fill(task, On::Cluster));
    let (mut report, with_its_log) = tokio::try_join!(both.0, both.1)?;
    report.add("with its log", with_its_log);
    Ok(report)
}

async fn fill(task: Task, on: On) -> anyhow::Result<Report> {
    let Some(disk) = Disk::new(on.size())? else {
        return Ok(Report::skipped("only root can make a small disk"));
    };
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    let data = disk.data()?;
    setup.place = match on {
        On::File | On::Cluster => Place::All(data),
        On::Tables => Place::Tables(data),
    };
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
    let runs = press(&world, &sessions, on).await?;
    world.fleet.hold_up(true);
    tokio::time::sleep(STAYS).await;
    disk.clear()?;
    if on == On::Cluster {
        world.database.revive().await?;
    }
    world.fleet.hold_up(false);
    world.fleet.note(Fault {
        what: "full disk",
        from,
        until: Moment::now(),
        hits: Hits::Everybody,
        held: Vec::new(),
    });

    let back = Instant::now();
    let last = world.load.begin_as(&sessions[0], "the last one").await?;
    let back = back.elapsed();
    world.settle().await;
    let damage = world.facts.damage().await?;

    let mut outcome = world.finish(&Expect::SUCCESS).await?;
    let no_room = outcome.story.clients.refusals("insufficient_storage");
    let away = outcome.story.clients.refusals("unavailable");
    let report = &mut outcome.report;
    report.line(
        "full",
        format!("after {runs} runs; {no_room} times insufficient_storage, {away} unavailable"),
    );
    report.line(
        "room again",
        format!("a run asked for then ended after {}", seconds(back)),
    );
    report.must(no_room + away > 0, || {
        "goal: nobody was told that there is no room".to_owned()
    });
    report.must(last.is_some(), || {
        "goal: nothing is executed although there is room".to_owned()
    });
    report.must(damage.is_empty(), || {
        format!("goal: what is stored is damaged: {damage:?}")
    });
    Ok(outcome.report)
}

/// Asks for runs until there is no room any more; how many.
async fn press(world: &World, sessions: &[String], on: On) -> anyhow::Result<usize> {
    let mut dice = Dice::of(world.seed, "inputs");
    let begun = Instant::now();
    let mut n = 0;
    loop {
        let no_room = world.client.log().refusals("insufficient_storage") > 0;
        if on == On::Cluster {
            if world.database.says("PANIC")? {
                return Ok(n);
            }
            if no_room {
                // Its tables were full first. Its log is as soon as it needs another piece of that, which
                // it may refuse to say as well.
                let _ = world.database.execute("select pg_switch_wal()").await;
            }
        } else if no_room {
            return Ok(n);
        }
        ensure!(
            begun.elapsed() < Duration::from_mins(1),
            "the disk is not full after {n} runs"
        );
        n += 1;
        let name = format!("{} run {n}", dice.text(INPUT));
        drop(world.load.begin_as(&sessions[n % sessions.len()], &name));
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
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
    fn new(size: usize) -> anyhow::Result<Option<Self>> {
        let dir = tempfile::Builder::new().prefix("hango-disk-").tempdir()?;
        if fs::metadata(dir.path())?.uid() != 0 {
            return Ok(None);
        }
        let size = format!("size={size}");
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
        let said = Command::new("df")
            .args(["-B1", "--output=avail"])
            .arg(self.path())
            .output()?;
        let said = String::from_utf8(said.stdout)?;
        let left = said.split_whitespace().last().unwrap_or_default();
        let left: usize = left.parse().with_context(|| said.clone())?;
        let ballast = vec![0; left.saturating_sub(ROOM)];
        fs::write(self.path().join("ballast"), ballast)?;
        Ok(())
    }

    /// Gives the room back.
    fn clear(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.path().join("ballast"))?)
    }
}

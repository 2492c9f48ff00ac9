//! PostgreSQL's programs on this machine, and who executes them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

/// Where distributions keep the versions that they have.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Whom the programs run as where the tests run as root, whom they refuse.
const NOBODY: u32 = 65534;

/// The programs, in one directory.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// The directory.
    pub(crate) bin: PathBuf,
}

impl Programs {
    /// Finds them.
    pub(crate) fn find() -> anyhow::Result<Self> {
        if let Some(bin) = setting("HANGO_PG_BINDIR") {
            let programs = Self { bin: bin.into() };
            if programs.are_there() {
                return Ok(programs);
            }
            bail!(
                "HANGO_PG_BINDIR is {}, where there is no initdb",
                programs.bin.display()
            );
        }
        let Some(programs) = newest(Path::new(VERSIONS)) else {
            bail!(
                "the tests need a PostgreSQL server, 15 or newer. Any of these will do:\n  \
                 apt-get install postgresql-15              (its programs, used without a service)\n  \
                 HANGO_PG_BINDIR=/path/to/postgresql/bin    (where they are elsewhere)\n  \
                 a Docker engine that answers\n  \
                 HANGO_TEST_DATABASE_URL=postgres://…       (a server, as a role that may create databases)"
            );
        };
        Ok(programs)
    }

    fn are_there(&self) -> bool {
        self.bin.join("initdb").exists() && self.bin.join("pg_ctl").exists()
    }
}

fn newest(versions: &Path) -> Option<Programs> {
    let versions = fs::read_dir(versions).ok()?.flatten();
    let newest = versions
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let programs = Programs {
                bin: entry.path().join("bin"),
            };
            programs.are_there().then_some((version, programs))
        })
        .max_by_key(|(version, _)| *version);
    newest.map(|(_, programs)| programs)
}

/// A variable of the tests' own; empty is as good as none.
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no configuration but these variables"
)]
pub(crate) fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the files that this process makes are root's.
pub(crate) fn is_root(own: &Path) -> bool {
    fs::metadata(own).is_ok_and(|metadata| metadata.uid() == 0)
}

/// Gives a directory to whom the programs run as.
pub(crate) fn hand_over(directory: &Path) -> std::io::Result<()> {
    std::os::unix::fs::chown(directory, Some(NOBODY), Some(NOBODY))
}

/// Lets a command run as him.
pub(crate) fn as_nobody(command: &mut Command) {
    command.uid(NOBODY).gid(NOBODY);
}

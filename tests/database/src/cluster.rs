//! A PostgreSQL server of the machine's own programs, with a directory and a port of its own.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use anyhow::{Context, bail, ensure};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

use crate::guardian::Guardian;
use crate::programs::{Programs, as_nobody, hand_over, is_root};

/// Makes a cluster and starts it, waits for the end of the tests, and removes all of it.
const LIFE: &str = r#"
bin=$1 dir=$2 segment=$3
tidy() { "$bin/pg_ctl" -D "$dir/data" -m immediate stop; rm -rf "$dir"; }
trap 'tidy >/dev/null 2>&1' EXIT
trap 'exit 1' HUP INT TERM
"$bin/initdb" -D "$dir/data" -U hango -A trust -E UTF8 --locale=C --no-sync --no-instructions \
    --wal-segsize="$segment" >"$dir/initdb.log" 2>&1 &&
    cat "$dir/settings.conf" >>"$dir/data/postgresql.conf" &&
    "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -t 60 -w start >/dev/null 2>&1 &&
    echo ready || echo failed
read -r _
"#;

/// How often another port is tried, where somebody was faster to take it.
const TRIES: u32 = 5;
const PORT_TAKEN: &str = "Address already in use";

/// How much of a log is shown.
const SHOWN: usize = 60;

/// How a cluster works.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Whether a commit waits for the disk, and survives that the machine fails. A commit survives
    /// that the server is killed either way. With it the cluster is on a disk, and writes its log as
    /// one in production does; without, it is in memory where there is some.
    pub fsync: bool,
    /// The port; a free one, which stays the same over restarts, where none is given.
    pub port: Option<u16>,
    /// Settings of PostgreSQL beside, or instead of, those of this crate.
    pub extra: Vec<(String, String)>,
    /// Variables of the server's environment.
    pub environment: Vec<(String, String)>,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// Transactions are undone, then it ends.
    Fast,
    /// It ends at once and recovers when it starts again, as after a crash.
    Immediate,
}

impl Stop {
    const fn mode(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Immediate => "immediate",
        }
    }
}

/// A server. Dropping it stops it and removes all that it stored.
pub struct Cluster {
    programs: Programs,
    settings: Settings,
    port: u16,
    /// Its programs run as `nobody`, because the tests run as root.
    nobody: bool,
    // Before the directory: it has to be gone by then.
    _guardian: Guardian,
    directory: TempDir,
}

impl Cluster {
    /// Makes a cluster and starts it. Blocks for less than a second.
    pub fn start(settings: &Settings) -> anyhow::Result<Self> {
        let programs = Programs::find()?;
        let mut tries = 1;
        loop {
            let port = settings.port.map_or_else(free_port, Ok)?;
            match Self::on(port, &programs, settings) {
                Ok(cluster) => return Ok(cluster),
                Err(error) if tries == TRIES || !error.to_string().contains(PORT_TAKEN) => {
                    return Err(error);
                }
                Err(_) => tries += 1,
            }
        }
    }

    fn on(port: u16, programs: &Programs, settings: &Settings) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("hango-postgres-")
            .tempdir_in(place(settings))
            .context("there is no room for a cluster")?;
        let configuration = configuration(port, settings);
        fs::write(directory.path().join("settings.conf"), configuration)?;
        let nobody = is_root(directory.path());
        if nobody {
            hand_over(directory.path())?;
        }
        let shell = command("/bin/sh", directory.path(), settings, nobody);
        // In megabytes: 16 is PostgreSQL's own default.
        let segment = if settings.fsync { "16" } else { "1" };
        let arguments = [
            programs.bin.as_os_str(),
            directory.path().as_os_str(),
            segment.as_ref(),
        ];
        let mut guardian = Guardian::start(shell, LIFE, &arguments)?;
        let said = guardian.first_word()?;
        let cluster = Self {
            programs: programs.clone(),
            settings: settings.clone(),
            port,
            nobody,
            _guardian: guardian,
            directory,
        };
        ensure!(
            said == "ready",
            "PostgreSQL in {} did not start: {}",
            cluster.programs.bin.display(),
            cluster.log()
        );
        Ok(cluster)
    }

    /// The port it listens on, on the loopback address.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The URL of one of its databases, as its superuser. `postgres` is always there.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://hango@127.0.0.1:{}/{database}", self.port)
    }

    /// Stops the server; what it stored stays.
    pub fn stop(&self, how: Stop) -> anyhow::Result<()> {
        self.control(&["-m", how.mode(), "stop"])
    }

    /// Starts it again where it was, and waits until it accepts connections.
    pub fn resume(&self) -> anyhow::Result<()> {
        let log = self.directory.path().join("log");
        let log = log.to_str().context("the directory's name is text")?;
        self.control(&["-l", log, "start"])
    }

    /// Changes a setting, from its next start on.
    pub fn set(&self, name: &str, value: &str) -> anyhow::Result<()> {
        let file = self.data().join("postgresql.conf");
        let mut file = fs::OpenOptions::new().append(true).open(file)?;
        io::Write::write_all(&mut file, line(name, value).as_bytes())?;
        Ok(())
    }

    /// Executes statements in one of its databases, as its superuser.
    pub async fn execute(&self, database: &str, statements: &str) -> anyhow::Result<()> {
        execute(&self.url(database), statements).await
    }

    /// The end of what it logged.
    #[must_use]
    pub fn log(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.directory.path().join(name));
        // Before the server logs there is only what made the cluster.
        let log = read("log").or_else(|_| read("initdb.log"));
        let log = log.unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let mut shown = String::new();
        for text in &lines[lines.len().saturating_sub(SHOWN)..] {
            shown.push('\n');
            shown.push_str(text);
        }
        shown
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn control(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let program = self.programs.bin.join("pg_ctl");
        let directory = self.directory.path();
        let done = command(program, directory, &self.settings, self.nobody)
            .arg("-D")
            .arg(self.data())
            .args(["-t", "60", "-w"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        if !done.success() {
            bail!("pg_ctl {arguments:?} failed: {}", self.log());
        }
        Ok(())
    }
}

/// A command in `directory`, as whoever that belongs to.
fn command(
    program: impl AsRef<OsStr>,
    directory: &Path,
    settings: &Settings,
    nobody: bool,
) -> Command {
    let mut command = Command::new(program);
    let variables = settings.environment.iter();
    command
        .envs(variables.map(|(name, value)| (name, value)))
        .current_dir(directory)
        .stderr(Stdio::null());
    if nobody {
        as_nobody(&mut command);
    }
    command
}

/// Executes statements in a database of any server.
pub(crate) async fn execute(url: &str, statements: &str) -> anyhow::Result<()> {
    let mut conn = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(&mut conn)
        .await?;
    conn.close().await?;
    Ok(())
}

/// Where it stores: memory can be had like a directory, where nothing has to last.
fn place(settings: &Settings) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if !settings.fsync && memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn configuration(port: u16, settings: &Settings) -> String {
    let durable = if settings.fsync { "on" } else { "off" };
    let port = port.to_string();
    let own = [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port),
        ("unix_socket_directories", ""),
        ("fsync", durable),
        ("full_page_writes", durable),
        ("max_connections", "500"),
        ("shared_buffers", "64MB"),
        ("log_line_prefix", "%m [%p] %q%d "),
        ("log_checkpoints", "off"),
    ];
    let mut text = String::new();
    for (name, value) in own {
        text.push_str(&line(name, value));
    }
    for (name, value) in &settings.extra {
        text.push_str(&line(name, value));
    }
    text
}

fn line(name: &str, value: &str) -> String {
    let mut line = String::new();
    // A string takes whatever is written to it.
    let _ = writeln!(line, "{name} = '{}'", value.replace('\'', "''"));
    line
}

//! A directory with a configuration: what an operator has before he starts hango.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The key that every start makes sure of.
pub(crate) const KEY: &str = "hk_e2eTests0001_0123456789abcdefghijABCDEFGHIJ0123456789";

/// A directory, and the variables that hango is started with there.
pub(crate) struct Home {
    dir: TempDir,
    variables: BTreeMap<String, String>,
}

impl Home {
    /// An empty directory, and nothing but what keeps tests apart from each other.
    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let mut home = Self {
            dir,
            variables: BTreeMap::new(),
        };
        home.set("HANGO_LISTEN", "127.0.0.1:0");
        home
    }

    /// A server's: a key, and polls that are short for impatient tests.
    pub(crate) fn of_server() -> Self {
        let mut home = Self::empty();
        let url = format!("sqlite://{}", home.database().display());
        home.set("HANGO_DATABASE_URL", &url);
        home.set("HANGO_BOOTSTRAP_API_KEY", KEY);
        home.set("HANGO_RUN_POLL_INTERVAL", "200ms");
        home
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Writes `hango.toml`, where hango looks for it.
    pub(crate) fn write_config(&self, text: &str) {
        std::fs::write(self.path().join("hango.toml"), text).expect("the file can be written");
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where a server's store is.
    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("hango.db")
    }

    /// The binary with those arguments, in this directory, with nothing of the tests' environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hango"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .envs(&self.variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command that ends by itself.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().expect("hango starts");
        Ended::of(&output)
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit status; `None` if a signal ended it.
    pub(crate) status: Option<i32>,
    /// What it printed.
    pub(crate) out: String,
    /// What it logged.
    pub(crate) err: String,
}

impl Ended {
    fn of(output: &Output) -> Self {
        Self {
            status: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

//! A directory with a configuration: what an operator has before he starts hango.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::store::Store;

/// The configuration's file.
const CONFIG: &str = "hango.toml";

/// The key that every start makes sure of.
pub(crate) const KEY: &str = "hk_e2eTests0001_0123456789abcdefghijABCDEFGHIJ0123456789";

/// A directory, and the variables that hango is started with there.
pub(crate) struct Home {
    dir: TempDir,
    variables: BTreeMap<String, String>,
    store: Store,
}

impl Home {
    /// An empty directory, and nothing but what keeps tests apart from each other.
    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let mut home = Self {
            store: Store::Sqlite(dir.path().join("hango.db")),
            dir,
            variables: BTreeMap::new(),
        };
        home.set("HANGO_LISTEN", "127.0.0.1:0");
        home
    }

    /// A server's on an embedded store: a key, and polls that are short for impatient tests.
    pub(crate) fn of_server() -> Self {
        let home = Self::empty();
        let store = home.store.clone();
        home.with_store(store)
    }

    /// A server's on that store. On one that others may work with, leases are short besides: what a
    /// process held that is gone is waited for.
    pub(crate) fn of_server_on(store: Store) -> Self {
        let mut home = Self::empty().with_store(store);
        home.set("HANGO_RUN_LEASE_TTL", "4s");
        home.set("HANGO_RUN_HEARTBEAT_INTERVAL", "1s");
        home.set("HANGO_RUN_RECLAIM_INTERVAL", "500ms");
        home
    }

    fn with_store(mut self, store: Store) -> Self {
        self.set("HANGO_DATABASE_URL", &store.url());
        self.set("HANGO_BOOTSTRAP_API_KEY", KEY);
        self.set("HANGO_RUN_POLL_INTERVAL", "200ms");
        self.store = store;
        self
    }

    /// Another one with the same variables and the same configuration: a second process's.
    pub(crate) fn another(&self) -> Self {
        let mut home = Self::empty();
        home.variables.clone_from(&self.variables);
        home.store = self.store.clone();
        let config = std::fs::read_to_string(self.path().join(CONFIG)).unwrap_or_default();
        home.write_config(&config);
        home
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Writes `hango.toml`, where hango looks for it.
    pub(crate) fn write_config(&self, text: &str) {
        std::fs::write(self.path().join(CONFIG), text).expect("the file can be written");
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where a server's store is.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Where an embedded store is.
    pub(crate) fn file(&self) -> PathBuf {
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

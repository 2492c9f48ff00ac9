//! The released binary as a process, in a directory of its own and with nothing of this one's
//! environment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::api::Api;
use crate::machine::{self, Ticks};

/// The key that every start makes sure of.
pub(crate) const KEY: &str = "hk_e2eTests0001_0123456789abcdefghijABCDEFGHIJ0123456789";

/// What is started, and with which settings.
#[derive(Clone)]
pub(crate) struct Program {
    binary: PathBuf,
    variables: BTreeMap<String, String>,
}

impl Program {
    /// The binary that was given, or the one that was built beside this program.
    pub(crate) fn find(given: Option<PathBuf>) -> anyhow::Result<Self> {
        let beside = || anyhow::Ok(std::env::current_exe()?.with_file_name("hango"));
        // It is started in other directories.
        let binary = std::path::absolute(given.map_or_else(beside, Ok)?)?;
        ensure!(
            binary.is_file(),
            "{} is not there. Build it first:\n  cargo build --release -p hango\nor name another \
             one with --binary",
            binary.display()
        );
        let variables = [
            ("HANGO_LISTEN", "127.0.0.1:0"),
            ("HANGO_BOOTSTRAP_API_KEY", KEY),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self {
            binary,
            variables: variables.into(),
        })
    }

    /// The same with other settings beside.
    pub(crate) fn with(&self, settings: &[(&str, &str)]) -> Self {
        let mut program = self.clone();
        for (name, value) in settings {
            let (name, value) = ((*name).to_owned(), (*value).to_owned());
            program.variables.insert(name, value);
        }
        program
    }

    /// Where the binary is.
    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// Starts `hango serve` with those arguments, and waits until it listens.
    pub(crate) fn serve(&self, arguments: &[&str]) -> anyhow::Result<Hango> {
        let directory = tempfile::tempdir()?;
        let log = directory.path().join("log");
        let mut child = Command::new(&self.binary)
            .arg("serve")
            .args(arguments)
            .current_dir(directory.path())
            .env_clear()
            .envs(&self.variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .context("hango does not start")?;
        let out = child.stdout.take().context("its output is piped")?;
        let mut hango = Hango {
            child,
            address: String::new(),
            directory,
        };
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let listening = lines.find_map(|line| {
            let address = line.strip_prefix("listening on http://")?;
            Some(address.to_owned())
        });
        let Some(address) = listening else {
            bail!("hango did not start: {}", hango.log());
        };
        hango.address = address;
        Ok(hango)
    }
}

/// A process. Dropping it kills it.
pub(crate) struct Hango {
    child: Child,
    address: String,
    directory: TempDir,
}

impl Hango {
    /// A client of it.
    pub(crate) fn api(&self) -> anyhow::Result<Api> {
        Api::of(&self.address)
    }

    /// What it used of the processors.
    pub(crate) fn cpu(&self) -> anyhow::Result<Ticks> {
        machine::cpu(self.child.id())
    }

    /// The memory that it has, in bytes.
    pub(crate) fn memory(&self) -> anyhow::Result<u64> {
        machine::memory(self.child.id())
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Lets it end by itself.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "hango ended badly: {}", self.log());
        Ok(())
    }

    /// What it logged.
    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Hango {
    fn drop(&mut self) {
        // Both fail only for a process that is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

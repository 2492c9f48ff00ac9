//! What tidies up behind this process, even if it is killed.
//!
//! A shell waits for the end of its input, which is a pipe from this process: the system closes it
//! whenever and however the process ends. Statics are never dropped, and a killed process drops nothing.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context;

/// A shell that tidies up when it is dropped, or when this process ends.
pub struct Guardian {
    shell: Child,
    /// Open for as long as there is something to guard.
    alive: Option<ChildStdin>,
}

impl Guardian {
    /// Starts `script`, which has to wait for the end of its input at the right place, in `shell`; the
    /// command may have a user and variables already. It leads a process group of its own.
    ///
    /// # Errors
    ///
    /// Where no shell can be started.
    pub fn start(mut shell: Command, script: &str, arguments: &[&OsStr]) -> anyhow::Result<Self> {
        let mut shell = shell
            .args(["-c", script, "hango-test-database"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What a terminal sends to the tests does not reach it.
            .process_group(0)
            .spawn()
            .context("a shell could not be started")?;
        let alive = shell.stdin.take();
        Ok(Self { shell, alive })
    }

    /// The process group of the script, which others may join: a script that ends with `kill -KILL 0` takes
    /// them with it.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.shell.id()
    }

    /// The first line that the script writes; empty if it ends without one.
    ///
    /// # Errors
    ///
    /// Where the script writes something else than text.
    pub fn first_word(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if let Some(out) = self.shell.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        Ok(line.trim().to_owned())
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Err(error) = self.shell.wait() {
            eprintln!("nobody knows whether a test's server was tidied up: {error}");
        }
    }
}

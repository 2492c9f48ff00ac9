//! One replica: the real process, and what a machine can do to it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hango_test_database::Guardian;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::moment::Moment;

/// The longest that a process may take until it listens.
const STARTS: Duration = Duration::from_secs(30);

/// What ends the replicas with the harness, even one that is killed.
const LIFE: &str = "cat >/dev/null; kill -KILL 0";

/// Whoever ends all replicas that are of its group, when it is dropped or the harness ends.
pub(crate) fn guardian() -> anyhow::Result<Guardian> {
    Guardian::start(std::process::Command::new("sh"), LIFE, &[])
}

/// How a replica is started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// The process group of its guardian.
    pub(crate) group: i32,
    /// Where, and where its logs are.
    pub(crate) dir: PathBuf,
    /// The variables that hango is started with.
    pub(crate) variables: Vec<(String, String)>,
}

impl Start {
    /// The same with another variable.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut start = self.clone();
        start.variables.push((name.to_owned(), value.to_owned()));
        start
    }
}

impl Start {
    /// Executes another command of the binary; what it printed.
    pub(crate) async fn command(&self, arguments: &str) -> anyhow::Result<String> {
        let output = Command::new(env!("CARGO_BIN_EXE_hango"))
            .args(arguments.split(' '))
            .current_dir(&self.dir)
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .await?;
        anyhow::ensure!(output.status.success(), "{arguments}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// A process. Dropping it kills it.
pub(crate) struct Replica {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
    /// Its log.
    pub(crate) log: PathBuf,
}

impl Replica {
    /// Starts one whose log has that name, without waiting until it listens.
    fn spawn(start: &Start, name: &str) -> anyhow::Result<(Child, PathBuf)> {
        let log = start.dir.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("make {}", log.display()))?;
        let child = Command::new(env!("CARGO_BIN_EXE_hango"))
            .arg("serve")
            .current_dir(&start.dir)
            .env_clear()
            .envs(start.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .process_group(start.group)
            .kill_on_drop(true)
            .spawn()
            .context("start hango")?;
        Ok((child, log))
    }

    /// Starts one and waits until it listens, or until it has ended before that; and where its log is.
    pub(crate) async fn start(
        start: &Start,
        name: &str,
    ) -> anyhow::Result<(PathBuf, Option<Self>)> {
        let (mut child, log) = Self::spawn(start, name)?;
        let out = child.stdout.take().context("its output is piped")?;
        let mut lines = BufReader::new(out).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = line.strip_prefix("listening on http://") {
                    return Ok(Some(address.to_owned()));
                }
            }
            Ok::<_, std::io::Error>(None)
        };
        let listening = tokio::time::timeout(STARTS, listening).await;
        let listening = listening.with_context(|| format!("{name} does not listen"))??;
        let Some(address) = listening else {
            child.wait().await?;
            return Ok((log, None));
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let replica = Self {
            child,
            address,
            log: log.clone(),
        };
        Ok((log, Some(replica)))
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw).context("it has ended")?;
        kill_process(pid, signal).context("send a signal")
    }

    /// `kill -9`, and waits until it is gone; when it was sent.
    pub(crate) async fn kill(mut self) -> anyhow::Result<Moment> {
        let at = Moment::now();
        self.child.kill().await?;
        Ok(at)
    }

    /// Whether it is stopped.
    pub(crate) fn is_stopped(&self) -> anyhow::Result<bool> {
        let pid = self.child.id().context("it has ended")?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name of the program, which may hold anything, is in parentheses.
        let state = stat.rsplit(") ").next();
        Ok(state.is_some_and(|state| state.starts_with('T')))
    }

    /// Whether it is there.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it has ended by itself; how, and how long that took.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<(ExitStatus, Duration)> {
        let begun = Instant::now();
        Ok((self.child.wait().await?, begun.elapsed()))
    }

    /// The owner that its claims have, once it has said so; `None` if it dies before.
    pub(crate) async fn owner(&mut self) -> anyhow::Result<Option<String>> {
        const SAID_WITHIN: Duration = Duration::from_secs(5);
        let begun = Instant::now();
        while begun.elapsed() < SAID_WITHIN {
            if let Some(owner) = owner_in(&self.log)? {
                return Ok(Some(owner));
            }
            if !self.is_alive() {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bail!("{} names no owner", self.log.display())
    }
}

fn owner_in(log: &Path) -> anyhow::Result<Option<String>> {
    let text = std::fs::read_to_string(log)?;
    let mut owners = text.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(line["owner"].as_str()?.to_owned())
    });
    Ok(owners.next())
}

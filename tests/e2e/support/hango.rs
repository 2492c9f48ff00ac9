//! The real process, and what a machine can do to it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::home::Home;
use super::until::{until, until_true};

/// A running hango. Dropping it kills it; if the test fails, its log is printed.
pub(crate) struct Hango {
    child: Child,
    out: Lines,
    log: Lines,
}

/// What a process wrote so far.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// Collects from a pipe until it is closed.
    fn of(pipe: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let collected = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                let mut all = collected.0.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(line);
            }
        });
        lines
    }

    fn all(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

impl Hango {
    /// Starts a command that goes on.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut child = home.command(arguments).spawn().expect("hango starts");
        let out = child.stdout.take().expect("standard output is piped");
        let log = child.stderr.take().expect("standard error is piped");
        Self {
            child,
            out: Lines::of(out),
            log: Lines::of(log),
        }
    }

    /// Starts a server and waits until it listens.
    pub(crate) async fn serve(home: &Home) -> Self {
        let mut hango = Self::start(home, &["serve"]);
        hango.address().await;
        hango
    }

    /// Where it listens, once it does.
    pub(crate) async fn address(&mut self) -> String {
        until("hango listens", async || {
            let found = self.out.all().into_iter().find_map(|line| {
                let address = line.strip_prefix("listening on http://")?;
                Some(address.to_owned())
            });
            if found.is_none() {
                let ended = self.child.try_wait().expect("the process can be asked");
                assert!(
                    ended.is_none(),
                    "hango did not start: {:#?}",
                    self.log.all()
                );
            }
            found
        })
        .await
    }

    /// What it printed so far.
    pub(crate) fn printed(&self) -> String {
        self.out.all().join("\n")
    }

    /// What it logged so far.
    pub(crate) fn logged(&self) -> String {
        self.log.all().join("\n")
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill9(mut self) {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("the process can be waited for");
    }

    /// Stops its clock, as far as it can see.
    pub(crate) fn stop(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub(crate) fn cont(&self) {
        self.signal("CONT");
    }

    /// Asks it to end.
    pub(crate) fn term(&self) {
        self.signal("TERM");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status()
            .expect("there is a kill program");
        assert!(sent.success(), "SIG{name} was not sent");
    }

    /// Waits until it has ended by itself; how, and how long that took.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        let status = until("hango ends", async || {
            self.child.try_wait().expect("the process can be asked")
        })
        .await;
        (status, begun.elapsed())
    }

    /// Waits for a line on its standard output.
    pub(crate) async fn prints(&self, text: &str) {
        until_true(&format!("hango prints {text:?}"), || {
            self.printed().contains(text)
        })
        .await;
    }
}

impl Drop for Hango {
    fn drop(&mut self) {
        // Both fail only for a process that is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- hango printed\n{}", self.printed());
            eprintln!("--- hango logged\n{}\n---", self.logged());
        }
    }
}

//! What may happen at a failpoint.

use std::str::FromStr;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use super::Reached;

/// How long a thread lies still so that a signal which stops its whole process finds it here.
const SIGNAL_ARRIVES: Duration = Duration::from_millis(20);

/// Something that happens at a failpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Action {
    /// The process is gone, as after `kill -9`.
    Kill,
    /// The process aborts.
    Abort,
    /// The process stops until somebody lets it go on.
    Stop,
    /// The call waits.
    Sleep(Duration),
    /// The call fails, as if what it asks could not be reached.
    Error,
    /// The task panics.
    Panic,
}

impl Action {
    /// Does it; fails where the call is to fail.
    pub(super) async fn perform(self, point: &'static str) -> Result<(), Reached> {
        match self {
            Self::Kill => {
                signal(Signal::KILL);
                // Not one instruction behind the point.
                loop {
                    std::thread::park();
                }
            }
            Self::Abort => std::process::abort(),
            Self::Stop => {
                signal(Signal::STOP);
                std::thread::sleep(SIGNAL_ARRIVES);
            }
            Self::Sleep(time) => tokio::time::sleep(time).await,
            Self::Error => return Err(Reached(point)),
            Self::Panic => panic!("failpoint {point}"),
        }
        Ok(())
    }
}

fn signal(signal: Signal) {
    kill_process(getpid(), signal).expect("a process may signal itself");
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sleep = || {
            let millis = text.strip_prefix("sleep(")?.strip_suffix(')')?;
            Some(Self::Sleep(Duration::from_millis(millis.parse().ok()?)))
        };
        match text {
            "kill" => Ok(Self::Kill),
            "abort" => Ok(Self::Abort),
            "stop" => Ok(Self::Stop),
            "error" => Ok(Self::Error),
            "panic" => Ok(Self::Panic),
            _ => sleep().ok_or_else(|| {
                format!("there is no action {text:?}; there are kill, abort, stop, sleep(ms), error, panic")
            }),
        }
    }
}

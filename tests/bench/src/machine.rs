//! What the system tells of processes, and of itself.

use std::fs;
use std::ops::{Add, Sub};
use std::time::Duration;

use anyhow::{Context, ensure};

/// What processes used of the processors, all of their threads together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Ticks(u64);

impl Ticks {
    /// As time; the system counts in hundredths of a second.
    pub(crate) fn time(self) -> Duration {
        let each = Duration::from_secs(1) / u32::try_from(per_second()).unwrap_or(100);
        each * u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl Add for Ticks {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Ticks {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self(self.0.saturating_sub(before.0))
    }
}

fn per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// What a process used.
pub(crate) fn cpu(process: u32) -> anyhow::Result<Ticks> {
    let fields = fields(process)?;
    Ok(Ticks(fields.own))
}

/// What a process and its children used, those that have ended included.
pub(crate) fn cpu_of_family(parent: u32) -> anyhow::Result<Ticks> {
    let own = fields(parent)?;
    let mut ticks = own.own + own.ended_children;
    for entry in fs::read_dir("/proc").context("there is no /proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // It may have ended since.
        if let Ok(fields) = fields(process)
            && fields.parent == parent
        {
            ticks += fields.own + fields.ended_children;
        }
    }
    Ok(Ticks(ticks))
}

/// The process that started this one.
pub(crate) fn parent(process: u32) -> anyhow::Result<u32> {
    Ok(fields(process)?.parent)
}

struct Fields {
    parent: u32,
    own: u64,
    ended_children: u64,
}

fn fields(process: u32) -> anyhow::Result<Fields> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    parse(&stat).with_context(|| format!("/proc/{process}/stat cannot be read: {stat}"))
}

/// Behind the command's name, which may contain anything, stand state, parent, and from the 12th on
/// the ticks: own and in the system, then those of children that were waited for.
fn parse(stat: &str) -> Option<Fields> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Fields {
        parent: u32::try_from(number(1)?).ok()?,
        own: number(11)? + number(12)?,
        ended_children: number(13)? + number(14)?,
    })
}

/// The memory that a process has, in bytes.
pub(crate) fn memory(process: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes * 1024)
        .context("the system does not tell a process's memory")
}

/// How much the machine has to do: of the last minute.
pub(crate) fn load() -> anyhow::Result<String> {
    let load = fs::read_to_string("/proc/loadavg")?;
    let first = load.split_whitespace().next().unwrap_or_default();
    ensure!(!first.is_empty(), "/proc/loadavg is empty");
    Ok(first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_be_called_anything() {
        let stat = "42 (a) b (c)) S 7 42 42 0 -1 4194304 1 2 3 4 10 20 300 400 20 0 1 0 5 6";

        let fields = parse(stat).expect("it can be read");

        assert_eq!(fields.parent, 7);
        assert_eq!(fields.own, 30);
        assert_eq!(fields.ended_children, 700);
    }
}

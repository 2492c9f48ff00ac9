//! What is to happen where, and at which passing: one entry of `HANGO_FAILPOINT`.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::action::Action;
use super::{calls, stores};

/// A point that is armed.
pub(super) struct Failpoint {
    point: String,
    /// Only for the tool or provider of that name.
    only: Option<String>,
    /// What happens there.
    pub(super) action: Action,
    due: Due,
    passed: AtomicU64,
}

/// At which passings something happens, counting from 1.
#[derive(Clone, Copy)]
enum Due {
    At(u64),
    From(u64),
}

impl Failpoint {
    /// Whether it is that point, for the tool or provider of that name.
    pub(super) fn is_at(&self, name: &str, whose: &str) -> bool {
        self.point == name && self.only.as_ref().is_none_or(|only| only == whose)
    }

    /// Counts a passing; whether it is one at which something happens.
    pub(super) fn is_due(&self) -> bool {
        let passing = 1 + self.passed.fetch_add(1, Ordering::SeqCst);
        match self.due {
            Due::At(nth) => passing == nth,
            Due::From(nth) => passing >= nth,
        }
    }
}

impl FromStr for Failpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let (point, action, nth) = (parts.next(), parts.next(), parts.next());
        let (Some(point), Some(action), None) = (point, action, parts.next()) else {
            return Err(format!("{text:?} is not point:action or point:action:nth"));
        };
        let (point, only) = match point.split_once('@') {
            Some((point, only)) => (point, Some(only.to_owned())),
            None => (point, None),
        };
        if !points().any(|known| known == point) {
            let known: Vec<_> = points().collect();
            let known = known.join(", ");
            return Err(format!("there is no point {point:?}; there are {known}"));
        }
        Ok(Self {
            point: point.to_owned(),
            only,
            action: action.parse()?,
            due: nth.map_or(Ok(Due::At(1)), str::parse)?,
            passed: AtomicU64::new(0),
        })
    }
}

impl FromStr for Due {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, from) = match text.strip_suffix('+') {
            Some(number) => (number, true),
            None => (text, false),
        };
        match number.parse() {
            Ok(nth) if nth > 0 && from => Ok(Self::From(nth)),
            Ok(nth) if nth > 0 => Ok(Self::At(nth)),
            _ => Err(format!("{text:?} is no passing: 1, 2, … or 1+, 2+, …")),
        }
    }
}

impl fmt::Debug for Failpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nth, on) = match self.due {
            Due::At(nth) => (nth, ""),
            Due::From(nth) => (nth, "+"),
        };
        let (at, only) = self.only.as_ref().map_or(("", ""), |only| ("@", only));
        write!(f, "{}{at}{only}:{:?}:{nth}{on}", self.point, self.action)
    }
}

/// The name of every point.
fn points() -> impl Iterator<Item = &'static str> {
    stores::POINTS
        .into_iter()
        .chain([calls::PROVIDER, calls::TOOL])
        .flatten()
        .copied()
}

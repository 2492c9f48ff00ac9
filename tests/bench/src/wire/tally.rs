//! What was counted: transactions, by the statements that they consisted of.

use std::collections::{BTreeMap, HashMap};
use std::ops::Sub;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frames::{Backend, Frontend};

/// How much of a statement is shown.
const SHOWN: usize = 64;

/// A transaction's statements, in order.
pub(crate) type Shape = Vec<Arc<str>>;

/// How often something happened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Times {
    pub(crate) transactions: u64,
    pub(crate) trips: u64,
}

/// What kind of transaction something is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    /// It changes something.
    Write,
    /// It renews leases, asks for cancels, or takes runs back.
    Lease,
    /// A claim that found nothing.
    EmptyClaim,
    /// A key is looked up.
    Authentication,
    /// It only reads.
    Read,
}

/// The counts of all connections.
#[derive(Default)]
pub(crate) struct Tally(Mutex<BTreeMap<Shape, Times>>);

/// The counts of a moment, or between two.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(BTreeMap<Shape, Times>);

impl Tally {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Shape, Times>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counted(&self) -> Counted {
        Counted(self.lock().clone())
    }
}

impl Counted {
    /// Each shape with how often it was seen.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = (&Shape, Times)> {
        self.0.iter().map(|(shape, times)| (shape, *times))
    }

    /// All of a kind.
    pub(crate) fn of(&self, kind: Kind) -> Times {
        self.shapes()
            .filter(|(shape, _)| kind_of(shape) == kind)
            .fold(Times::default(), |sum, (_, times)| sum + times)
    }

    /// All.
    pub(crate) fn all(&self) -> Times {
        self.shapes()
            .fold(Times::default(), |sum, (_, times)| sum + times)
    }

    /// How often a shape was seen.
    pub(crate) fn times(&self, shape: &Shape) -> Times {
        self.0.get(shape).copied().unwrap_or_default()
    }
}

impl std::ops::Add for Times {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            trips: self.trips + other.trips,
        }
    }
}

/// What was counted since.
impl Sub<&Self> for Counted {
    type Output = Self;

    fn sub(mut self, before: &Self) -> Self {
        for (shape, times) in &mut self.0 {
            let known = before.times(shape);
            times.transactions -= known.transactions;
            times.trips -= known.trips;
        }
        self.0.retain(|_, times| *times != Times::default());
        self
    }
}

/// By its statements.
pub(crate) fn kind_of(shape: &Shape) -> Kind {
    let any = |words: &[&str]| {
        shape.iter().any(|statement| {
            // Locking a row is no change of it.
            let statement = statement.replace("for no key update", "for a change");
            words.iter().any(|word| statement.contains(word))
        })
    };
    if any(&["insert into ", "delete from ", "pg_notify"]) {
        Kind::Write
    } else if any(&["recursive waiting"]) {
        Kind::EmptyClaim
    } else if any(&["set lease_expires_at", "from running_runs x"]) {
        Kind::Lease
    } else if any(&["update "]) {
        Kind::Write
    } else if any(&["api_keys"]) {
        Kind::Authentication
    } else {
        Kind::Read
    }
}

/// A statement as it is shown: its beginning, in one line.
pub(crate) fn shown(statement: &str) -> String {
    let words: Vec<_> = statement.split_whitespace().collect();
    let line = words.join(" ").replace('|', "/");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// One connection.
pub(super) struct Watched {
    tally: Arc<Tally>,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    named: HashMap<String, Arc<str>>,
    statements: Shape,
    trips: u64,
}

impl Watched {
    pub(super) fn new(tally: Arc<Tally>) -> Self {
        Self {
            tally,
            now: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn asked(&self, message: Frontend<'_>) {
        let now = &mut *self.lock();
        match message {
            Frontend::Query(text) => now.statements.push(text.into()),
            Frontend::Parse { name, text } => {
                now.named.insert(name.to_owned(), text.into());
            }
            Frontend::Bind { name } => now.statements.extend(now.named.get(name).cloned()),
        }
    }

    pub(super) fn answered(&self, Backend::Ready { within }: Backend) {
        let now = &mut *self.lock();
        now.trips += 1;
        if within || now.statements.is_empty() {
            return;
        }
        let shape = std::mem::take(&mut now.statements);
        let trips = std::mem::take(&mut now.trips);
        let mut all = self.tally.lock();
        let times = all.entry(shape).or_default();
        times.transactions += 1;
        times.trips += trips;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_ends_when_none_is_open() {
        let tally = Arc::new(Tally::default());
        let watched = Watched::new(Arc::clone(&tally));
        for _ in 0..2 {
            watched.asked(Frontend::Parse {
                name: "s",
                text: "update runs",
            });
            watched.asked(Frontend::Query("begin"));
            watched.answered(Backend::Ready { within: true });
            watched.asked(Frontend::Bind { name: "s" });
            watched.answered(Backend::Ready { within: true });
            watched.asked(Frontend::Query("commit"));
            watched.answered(Backend::Ready { within: false });
        }

        let shape: Shape = ["begin", "update runs", "commit"].map(Into::into).into();
        let expected = Times {
            transactions: 2,
            trips: 6,
        };
        assert_eq!(tally.counted().times(&shape), expected);
        assert_eq!(tally.counted().of(Kind::Write), expected);
        assert_eq!((tally.counted() - &tally.counted()).all(), Times::default());
    }

    #[test]
    fn a_transaction_is_known_by_what_it_does() {
        for (statements, expected) in [
            (
                vec!["begin", "select for no key update", "commit"],
                Kind::Read,
            ),
            (
                vec!["with recursive waiting for no key update of s"],
                Kind::EmptyClaim,
            ),
            (
                vec!["begin", "with recursive waiting", "insert into runs"],
                Kind::Write,
            ),
            (
                vec!["with renewed as (update runs r set lease_expires_at ="],
                Kind::Lease,
            ),
            (vec!["select pg_notify($1, $2)"], Kind::Write),
            (vec!["select from api_keys k"], Kind::Authentication),
            (vec!["update api_keys set last_used_at"], Kind::Write),
        ] {
            let shape: Shape = statements.into_iter().map(Into::into).collect();
            assert_eq!(kind_of(&shape), expected, "{shape:?}");
        }
    }
}

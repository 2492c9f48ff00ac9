//! Reading long lists in pieces, by position rather than by count, so that rows which come in
//! meanwhile neither repeat nor hide others.

use hango_domain::Timestamp;
use uuid::Uuid;

/// A place in a list that is ordered by age: behind this row. Carries no rights.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Position {
    /// When the row was made.
    pub at: Timestamp,
    /// Its id, for rows of the same moment.
    pub id: Uuid,
}

/// Which piece of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PageRequest {
    /// The most rows, at least 1.
    pub limit: u32,
    /// Behind which row; `None` from the beginning.
    pub after: Option<Position>,
}

/// A piece of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page<T> {
    /// The rows, newest first.
    pub items: Vec<T>,
    /// Where the next piece begins; `None` when there is none.
    pub next: Option<Position>,
}

impl<T> Page<T> {
    /// The page out of one row more than `limit`, where there was one: its presence says that the list
    /// goes on.
    pub fn of(mut items: Vec<T>, limit: u32, position: impl Fn(&T) -> Position) -> Self {
        let limit = limit as usize;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = more.then(|| items.last().map(position)).flatten();
        Self { items, next }
    }
}

//! Lists whose rows may be large. A page ends with so many rows, or behind the row with which it holds so many
//! bytes: then it is shorter than was asked for, and says where the list goes on.

use std::io::{self, Write};

use hango_ports::page::{Page, PageRequest, Position};
use serde::Serialize;

/// With so many bytes, as JSON, a page ends.
const ENOUGH: usize = 4 * 1024 * 1024;

/// The most rows that are read at once: how large they are is known only then.
const AT_ONCE: u32 = 25;

/// A piece of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Piece<T> {
    /// Its rows.
    pub rows: Vec<T>,
    /// Whether the list goes on behind them.
    pub more: bool,
}

/// A page that is being filled, from a store that is asked for a few rows at a time.
pub(super) struct Filling<T, P> {
    piece: Piece<T>,
    /// How many rows there is room for.
    room: u32,
    /// Where the next ones are: behind this one.
    after: P,
    /// Where a row is.
    place: fn(&T) -> P,
    bytes: usize,
}

impl<T: Serialize, P: Copy> Filling<T, P> {
    /// An empty one with room for `limit` rows behind a place.
    pub(super) const fn new(limit: u32, after: P, place: fn(&T) -> P) -> Self {
        let piece = Piece {
            rows: Vec::new(),
            more: true,
        };
        Self {
            piece,
            room: limit,
            after,
            place,
            bytes: 0,
        }
    }

    /// How many rows to read next, at most, and behind which place; `None` once that is all.
    pub(super) fn wants(&self) -> Option<(P, u32)> {
        let full = self.room == 0 || self.bytes >= ENOUGH;
        (self.piece.more && !full).then(|| (self.after, self.room.min(AT_ONCE)))
    }

    /// Takes what was read, until that is enough; `next` is where the list goes on behind it. A store may have
    /// left out rows that it could not read: they take their room all the same.
    pub(super) fn add(&mut self, rows: Vec<T>, next: Option<P>) {
        let asked = self.room.min(AT_ONCE);
        let mut rows = rows.into_iter();
        for row in rows.by_ref() {
            self.bytes += length(&row);
            self.after = (self.place)(&row);
            self.piece.rows.push(row);
            if self.bytes >= ENOUGH {
                break;
            }
        }
        self.room -= asked;
        let cut = rows.len() > 0;
        self.piece.more = cut || next.is_some();
        if !cut {
            self.after = next.unwrap_or(self.after);
        }
    }

    /// What came of it.
    pub(super) fn piece(self) -> Piece<T> {
        self.piece
    }
}

impl<T: Serialize> Filling<T, Option<Position>> {
    /// The same of a list that is ordered by age.
    pub(super) const fn of(request: PageRequest, place: fn(&T) -> Option<Position>) -> Self {
        Self::new(request.limit, request.after, place)
    }

    /// What to read next; `None` once that is all.
    pub(super) fn asks(&self) -> Option<PageRequest> {
        let (after, limit) = self.wants()?;
        Some(PageRequest { limit, after })
    }

    /// Takes what was read.
    pub(super) fn take(&mut self, page: Page<T>) {
        self.add(page.items, page.next.map(Some));
    }

    /// What came of it.
    pub(super) fn page(self) -> Page<T> {
        let next = self.after.filter(|_| self.piece.more);
        let items = self.piece.rows;
        Page { items, next }
    }
}

/// How many bytes a row has as JSON.
fn length(row: &impl Serialize) -> usize {
    let mut count = Count(0);
    // What cannot be written as JSON is refused where it is to be written.
    let _ = serde_json::to_writer(&mut count, row);
    count.0
}

struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads rows of these lengths behind a number; the most that was read at once.
    fn read(lengths: &[usize], limit: u32, after: usize) -> (Piece<(usize, String)>, usize) {
        let all = lengths.iter().map(|length| "x".repeat(*length));
        let all: Vec<_> = (1..).zip(all).collect();
        let mut most = 0;
        let mut filling = Filling::new(limit, after, |row: &(usize, String)| row.0);
        while let Some((after, limit)) = filling.wants() {
            let behind = &all[after..];
            let count = behind.len().min(limit as usize);
            most = most.max(count);
            let next = (behind.len() > count).then_some(after + count);
            filling.add(behind[..count].to_vec(), next);
        }
        (filling.piece(), most)
    }

    #[test]
    fn small_rows_fill_a_page() {
        for (rows, limit) in [
            (0, 5),
            (3, 5),
            (5, 5),
            (6, 5),
            (300, 200),
            (200, 200),
            (26, 25),
        ] {
            let (found, _) = read(&vec![1; rows], limit, 0);
            assert_eq!(found.rows.len(), rows.min(limit as usize));
            assert_eq!(found.more, rows > limit as usize, "{rows} of {limit}");
        }
    }

    #[test]
    fn large_rows_end_a_page_before_its_limit_and_none_is_lost_between_pages() {
        let lengths: Vec<_> = (0..30)
            .map(|n| if n % 3 == 0 { 1_000_000 } else { n })
            .collect();
        let mut seen = Vec::new();
        loop {
            let (found, at_once) = read(&lengths, 200, seen.len());
            assert!(at_once <= AT_ONCE as usize);
            let bytes: usize = found.rows.iter().map(length).sum();
            assert!(bytes < ENOUGH + 1_000_100, "{bytes}");
            seen.extend(found.rows.into_iter().map(|row| row.0));
            if !found.more {
                break;
            }
        }
        assert!(seen.into_iter().eq(1..=30));
    }

    #[test]
    fn rows_that_a_store_left_out_are_passed_over() {
        let mut filling = Filling::new(60, 0, |row: &usize| *row);
        assert_eq!(filling.wants(), Some((0, 25)));
        filling.add(Vec::new(), Some(25));
        assert_eq!(filling.wants(), Some((25, 25)));
        filling.add(vec![26], Some(50));
        assert_eq!(filling.wants(), Some((50, 10)));
        filling.add(Vec::new(), Some(60));
        assert_eq!((filling.wants(), filling.after), (None, 60));
        let piece = filling.piece();
        assert_eq!((piece.rows, piece.more), (vec![26], true));
    }

    #[test]
    fn a_row_that_is_larger_than_a_page_is_one() {
        let (found, _) = read(&[2 * ENOUGH, 2 * ENOUGH], 200, 0);
        assert_eq!((found.rows.len(), found.more), (1, true));
        let (found, _) = read(&[2 * ENOUGH, 2 * ENOUGH], 200, 1);
        assert_eq!((found.rows.len(), found.more), (1, false));
    }
}

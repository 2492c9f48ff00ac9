//! Lists in pieces.

use hango_ports::page::{Page, PageRequest, Position};

/// The piece of `rows` that is asked for, newest first.
pub(crate) fn page<T>(
    mut rows: Vec<T>,
    request: PageRequest,
    position: impl Fn(&T) -> Position,
) -> Page<T> {
    let key = |position: Position| (position.at, position.id);
    rows.sort_by_key(|row| std::cmp::Reverse(key(position(row))));
    if let Some(after) = request.after {
        rows.retain(|row| key(position(row)) < key(after));
    }
    rows.truncate((request.limit as usize).saturating_add(1));
    Page::of(rows, request.limit, position)
}

//! Lists in pieces, newest first, as their statements take them.

use chrono::{DateTime, Utc};
use hango_domain::Timestamp;
use hango_ports::page::PageRequest;
use uuid::Uuid;

use crate::rows::moment;

/// The row behind which a page begins; for the first page, one that is newer than all.
pub(crate) fn behind(page: PageRequest) -> (DateTime<Utc>, Uuid) {
    let newest = (moment(Timestamp::from_micros(i64::MAX)), Uuid::max());
    page.after.map_or(newest, |row| (moment(row.at), row.id))
}

/// How many rows a page reads: one more than it shows, to know whether the list goes on.
pub(crate) fn one_more(page: PageRequest) -> i64 {
    i64::from(page.limit) + 1
}

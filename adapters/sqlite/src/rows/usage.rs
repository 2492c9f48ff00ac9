//! Sums over runs.

use hango_domain::conversation::Usage;
use hango_domain::usage::{UsageGroup, UsageKey, UsageSum};
use sqlx::sqlite::SqliteRow;

use super::Columns;
use crate::error::Error;

/// What the higher half of a sum counts.
const BILLION: u128 = 1_000_000_000;

/// Reads what was summed up of one kind of document.
macro_rules! whole {
    ($columns:ident, $usage:ident { $($tokens:ident),* }) => {
        Usage {$(
            $tokens: whole(
                &$columns,
                concat!(stringify!($usage), "_", stringify!($tokens), "_high"),
                concat!(stringify!($usage), "_", stringify!($tokens), "_low"),
            )?,
        )*
            estimated: $columns.number::<u64>(concat!(stringify!($usage), "_guesses"))? > 0,
        }
    };
}

/// The sum of one group.
pub(crate) fn usage_sum(row: &SqliteRow, group: Option<UsageGroup>) -> Result<UsageSum, Error> {
    let columns = Columns::new(row, "runs", "key");
    Ok(UsageSum {
        key: match group {
            None => None,
            Some(UsageGroup::Agent) => Some(UsageKey::Agent(columns.id("key")?)),
            Some(UsageGroup::User) => Some(UsageKey::User(columns.id("key")?)),
            Some(UsageGroup::Day) => Some(UsageKey::Day(columns.form("key")?)),
        },
        succeeded: columns.number("succeeded")?,
        failed: columns.number("failed")?,
        cancelled: columns.number("cancelled")?,
        usage: whole!(
            columns,
            usage {
                input_tokens,
                output_tokens,
                cache_read_tokens,
                cache_write_tokens
            }
        ),
        discarded: whole!(
            columns,
            usage_discarded {
                input_tokens,
                output_tokens,
                cache_read_tokens,
                cache_write_tokens
            }
        ),
    })
}

/// A sum out of its halves.
fn whole(columns: &Columns<'_>, high: &'static str, low: &'static str) -> Result<u64, Error> {
    let (high, low): (u64, u64) = (columns.number(high)?, columns.number(low)?);
    let whole = u128::from(high) * BILLION + u128::from(low);
    Ok(u64::try_from(whole).unwrap_or(u64::MAX))
}

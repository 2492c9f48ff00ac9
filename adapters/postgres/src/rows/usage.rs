//! Sums over runs.

use hango_domain::conversation::Usage;
use hango_domain::usage::{UsageGroup, UsageKey, UsageSum};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::Columns;
use crate::error::Error;

/// Reads what was summed up of one kind of document.
macro_rules! read {
    ($columns:ident, $usage:ident { $($tokens:ident),* }) => {
        Usage {$(
            $tokens: $columns.form(concat!(stringify!($usage), "_", stringify!($tokens)))?,
        )*
            estimated: $columns.big_number::<u64>(concat!(stringify!($usage), "_guesses"))? > 0,
        }
    };
}

/// The sum of one group.
pub(crate) fn usage_sum(row: &PgRow, group: Option<UsageGroup>) -> Result<UsageSum, Error> {
    let columns = Columns::new(row, "runs", "key");
    Ok(UsageSum {
        key: match group {
            None => None,
            Some(UsageGroup::Agent) => Some(UsageKey::Agent(columns.form::<Uuid>("key")?.into())),
            Some(UsageGroup::User) => Some(UsageKey::User(columns.form::<Uuid>("key")?.into())),
            Some(UsageGroup::Day) => Some(UsageKey::Day(columns.form("key")?)),
        },
        succeeded: columns.big_number("succeeded")?,
        failed: columns.big_number("failed")?,
        cancelled: columns.big_number("cancelled")?,
        usage: read!(
            columns,
            usage {
                input_tokens,
                output_tokens,
                cache_read_tokens,
                cache_write_tokens
            }
        ),
        discarded: read!(
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

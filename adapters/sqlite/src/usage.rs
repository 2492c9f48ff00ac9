//! Sums over runs.
//!
//! A count of tokens may be more than SQLite's integers hold, and so may a sum: both halves of each are
//! summed up for themselves, the last nine digits and those before them.

use async_trait::async_trait;
use hango_domain::TenantId;
use hango_domain::usage::{UsageGroup, UsageSum};
use hango_ports::StoreFailure;
use hango_ports::usage_store::{UsageQuery, UsageStore};

use crate::SqliteStore;
use crate::error::Error;
use crate::rows;

/// Both halves of a sum of tokens, as columns `…_high` and `…_low`.
macro_rules! halves {
    ($($usage:ident.$tokens:ident),*) => {
        concat!($(
            ", sum(cast(substr(", stringify!($usage), " -> '$.", stringify!($tokens),
            "', 1, max(0, length(", stringify!($usage), " -> '$.", stringify!($tokens),
            "') - 9)) as integer)) as ", stringify!($usage), "_", stringify!($tokens), "_high",
            ", sum(cast(substr(", stringify!($usage), " -> '$.", stringify!($tokens),
            "', -9) as integer)) as ", stringify!($usage), "_", stringify!($tokens), "_low"
        ),*)
    };
}

#[async_trait]
impl UsageStore for SqliteStore {
    async fn sum(
        &self,
        tenant: TenantId,
        query: UsageQuery,
    ) -> Result<Vec<UsageSum>, StoreFailure> {
        let rows = sqlx::query(concat!(
            "select case ?4
                 when 'agent' then agent_id
                 when 'user' then created_by
                 when 'day' then cast(created_at / 86400000000 as text)
             end as key,
             sum(state = 'succeeded') as succeeded, sum(state = 'failed') as failed, \
             sum(state = 'cancelled') as cancelled, \
             coalesce(sum(usage ->> '$.estimated'), 0) as usage_guesses, \
             coalesce(sum(usage_discarded ->> '$.estimated'), 0) as usage_discarded_guesses",
            halves!(
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
                usage_discarded.input_tokens,
                usage_discarded.output_tokens,
                usage_discarded.cache_read_tokens,
                usage_discarded.cache_write_tokens
            ),
            " from runs indexed by runs_by_age
             where tenant_id = ?1 and created_at >= ?2 and created_at < ?3
               and state in ('succeeded', 'failed', 'cancelled')
             group by key
             order by total(usage ->> '$.input_tokens') + total(usage ->> '$.output_tokens')
                 + total(usage_discarded ->> '$.input_tokens')
                 + total(usage_discarded ->> '$.output_tokens') desc, key
             limit ?5"
        ))
        .bind(tenant.to_string())
        .bind(query.from.as_micros())
        .bind(query.to.as_micros())
        .bind(query.group.map(UsageGroup::as_str))
        .bind(query.limit)
        .fetch_all(&self.readers)
        .await
        .map_err(Error::from)?;
        Ok(rows::all(&rows, |row| rows::usage_sum(row, query.group))?)
    }
}

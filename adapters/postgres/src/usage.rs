//! Sums over runs.

use async_trait::async_trait;
use hango_domain::TenantId;
use hango_domain::usage::{UsageGroup, UsageSum};
use hango_ports::StoreFailure;
use hango_ports::usage_store::{UsageQuery, UsageStore};

use crate::PostgresStore;
use crate::rows::{self, moment};

/// Sums of tokens, as text: they may be more than PostgreSQL's integers hold. At most what a count of
/// tokens can be.
macro_rules! sums {
    ($($usage:ident.$tokens:ident),*) => {
        concat!($(
            ", least(coalesce(sum((", stringify!($usage), " ->> '", stringify!($tokens),
            "')::numeric), 0), 18446744073709551615)::text as ",
            stringify!($usage), "_", stringify!($tokens)
        ),*)
    };
}

/// The sums over a tenant's runs that have ended. A run that cost nothing has no document.
pub(crate) const SUM: &str = concat!(
    "select key, count(*) filter (where state = 'succeeded') as succeeded, \
         count(*) filter (where state = 'failed') as failed, \
         count(*) filter (where state = 'cancelled') as cancelled, \
         count(*) filter (where (usage ->> 'estimated')::boolean) as usage_guesses, \
         count(*) filter (where (usage_discarded ->> 'estimated')::boolean) \
             as usage_discarded_guesses",
    sums!(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage_discarded.input_tokens,
        usage_discarded.output_tokens,
        usage_discarded.cache_read_tokens,
        usage_discarded.cache_write_tokens
    ),
    " from (
         select case $4
             when 'agent' then agent_id::text
             when 'user' then created_by::text
             when 'day' then floor(extract(epoch from created_at) / 86400)::bigint::text
         end as key, state, usage, usage_discarded
         from runs
         where tenant_id = $1 and created_at >= $2 and created_at < $3
           and state in ('succeeded', 'failed', 'cancelled')
     ) ended
     group by key
     order by sum(coalesce((usage ->> 'input_tokens')::numeric, 0)
         + coalesce((usage ->> 'output_tokens')::numeric, 0)
         + coalesce((usage_discarded ->> 'input_tokens')::numeric, 0)
         + coalesce((usage_discarded ->> 'output_tokens')::numeric, 0)) desc, key
     limit $5"
);

#[async_trait]
impl UsageStore for PostgresStore {
    async fn sum(
        &self,
        tenant: TenantId,
        query: UsageQuery,
    ) -> Result<Vec<UsageSum>, StoreFailure> {
        let UsageQuery {
            from,
            to,
            group,
            limit,
        } = query;
        let sums = self.pool.read(move |conn| {
            let query = sqlx::query(SUM)
                .bind(tenant.0)
                .bind(moment(from))
                .bind(moment(to))
                .bind(group.map(UsageGroup::as_str))
                .bind(i64::from(limit));
            Box::pin(async move {
                rows::all(&query.fetch_all(conn).await?, |row| {
                    rows::usage_sum(row, group)
                })
            })
        });
        Ok(sums.await?)
    }
}

//! Sums over runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use hango_domain::TenantId;
use hango_domain::usage::{UsageKey, UsageSum};
use hango_ports::StoreFailure;
use hango_ports::usage_store::{UsageQuery, UsageStore};

use crate::MemoryStore;

#[async_trait]
impl UsageStore for MemoryStore {
    async fn sum(
        &self,
        tenant: TenantId,
        query: UsageQuery,
    ) -> Result<Vec<UsageSum>, StoreFailure> {
        let mut sums: BTreeMap<Option<UsageKey>, UsageSum> = BTreeMap::new();
        let state = self.lock();
        let counted = state.runs().filter(|run| {
            run.tenant_id == tenant
                && run.state.status().is_terminal()
                && (query.from..query.to).contains(&run.created_at)
        });
        for run in counted {
            let key = query.group.map(|group| UsageKey::of(group, run));
            let sum = sums.entry(key).or_insert(UsageSum {
                key,
                ..UsageSum::default()
            });
            sum.count(run);
        }
        let mut sums: Vec<_> = sums.into_values().collect();
        sums.sort_by_key(|sum| Reverse(sum.tokens()));
        sums.truncate(query.limit as usize);
        Ok(sums)
    }
}

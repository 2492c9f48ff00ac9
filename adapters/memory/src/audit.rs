//! The audit trail.

use async_trait::async_trait;
use hango_domain::TenantId;
use hango_ports::StoreFailure;
use hango_ports::audit_store::{AuditFilter, AuditRow, AuditStore, NewAudit};
use hango_ports::page::{Page, PageRequest, Position};

use crate::MemoryStore;
use crate::pages::page;

#[async_trait]
impl AuditStore for MemoryStore {
    async fn record(&self, row: NewAudit) -> Result<(), StoreFailure> {
        self.lock().keep(row, self.clock.now());
        Ok(())
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: AuditFilter,
        request: PageRequest,
    ) -> Result<Page<AuditRow>, StoreFailure> {
        let state = self.lock();
        let asked = |row: &&AuditRow| {
            row.tenant_id == tenant
                && filter.action.as_ref().is_none_or(|it| row.action == *it)
                && filter.target_id.is_none_or(|it| row.target_id == Some(it))
                && filter.actor_id.is_none_or(|it| row.actor_id == Some(it))
        };
        let rows = state.audit.iter().filter(asked).cloned().collect();
        Ok(page(rows, request, |row| Position {
            at: row.at,
            id: row.id.0,
        }))
    }
}

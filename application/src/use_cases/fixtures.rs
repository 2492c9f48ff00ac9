//! Use cases over an empty store in memory, for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hango_conformance::{Fixture, ManualClock};
use hango_domain::access::Role;
use hango_domain::agent::RunLimits;
use hango_domain::people::{ApiKey, Tenant, User};
use hango_domain::{SpanId, TraceId};
use hango_memory::MemoryStore;
use hango_ports::identity_store::Credential;
use hango_ports::wake_up::Alone;
use hango_ports::{Ids, Stores};
use uuid::Uuid;

use super::{ApiSettings, Caller, Catalog, ProviderInfo, RequestContext, UseCases};
use crate::live::LiveEvents;
use crate::signals::Signals;

/// Use cases, and what is behind them.
pub(super) struct World {
    pub(super) use_cases: UseCases,
    pub(super) signals: Arc<Signals>,
    /// Writes past the use cases.
    pub(super) fixture: Fixture,
}

struct SequentialIds(AtomicU64);

impl SequentialIds {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl Ids for SequentialIds {
    fn uuid(&self) -> Uuid {
        const VERSION_7: u128 = 0x0199_a000_0000_7000_8000_0000_0000_0000;
        Uuid::from_u128(VERSION_7 + u128::from(self.next()))
    }

    fn secret(&self) -> [u8; 32] {
        let mut secret = [0; 32];
        secret[24..].copy_from_slice(&self.next().to_be_bytes());
        secret
    }

    fn trace_id(&self) -> TraceId {
        TraceId([1; 16])
    }

    fn span_id(&self) -> SpanId {
        SpanId([1; 8])
    }
}

/// Use cases over an empty store, some of whose ports are replaced by `with`.
pub(super) fn world(with: impl FnOnce(Stores) -> Stores) -> World {
    let clock = Arc::new(ManualClock::default());
    let stores = with(Arc::new(MemoryStore::new(clock.clone())).stores());
    let signals = Arc::new(Signals::new(Arc::new(Alone)));

    let use_cases = UseCases::new(
        stores.clone(),
        Arc::new(SequentialIds(AtomicU64::new(0))),
        clock.clone(),
        signals.clone(),
        Arc::new(LiveEvents::default()),
        Catalog {
            providers: vec![ProviderInfo {
                name: "scripted".to_owned(),
                kind: "scripted".to_owned(),
            }],
            tools: Vec::new(),
        },
        ApiSettings {
            max_queued_runs_per_session: 16,
            running_per_tenant: 0,
            limits: RunLimits {
                max_iterations: 20,
                tool_timeout: Duration::from_secs(30),
                deadline: Duration::from_mins(30),
            },
            repeat_call_threshold: 3,
        },
    );
    World {
        use_cases,
        signals,
        fixture: Fixture::new(stores, clock),
    }
}

impl World {
    /// A credential that no store knows.
    pub(super) fn credential(&self, role: Role) -> Credential {
        let tenant: Tenant = self.fixture.new_tenant();
        let user: User = self.fixture.new_user(tenant.id, role);
        let key: ApiKey = self.fixture.new_key(&user);
        Credential { key, user, tenant }
    }

    /// Somebody with that credential.
    pub(super) fn caller(&self, role: Role) -> Caller {
        Caller::new(self.credential(role), RequestContext::default())
    }
}

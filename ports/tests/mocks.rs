//! The example of `docs/testing.md`.

use std::sync::Arc;

use hango_domain::access::Visibility;
use hango_domain::{RunId, TenantId};
use hango_ports::RunStore;
use hango_ports::run_store::MockRunStore;
use uuid::Uuid;

/// The code under test: whether a run has ended.
async fn has_ended(runs: Arc<dyn RunStore>, seen: Visibility, run: RunId) -> bool {
    let found = runs.find(seen, run).await.ok().flatten();
    found.is_some_and(|run| run.state.status().is_terminal())
}

#[test]
fn a_run_that_nobody_can_see_has_not_ended() {
    let mut runs = MockRunStore::new();
    runs.expect_find().once().returning(|_, _| Ok(None));

    let ended = futures::executor::block_on(has_ended(Arc::new(runs), seen(), run_id()));

    assert!(!ended);
}

fn seen() -> Visibility {
    Visibility {
        tenant: TenantId(Uuid::from_u128(1)),
        creator: None,
    }
}

fn run_id() -> RunId {
    RunId(Uuid::from_u128(2))
}

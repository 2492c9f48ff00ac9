//! The statement's own fence: it holds without the domain's.

use std::sync::Arc;

use hango_conformance::{Fixture, ManualClock, owner};
use hango_domain::run::Lease;

use super::table;
use crate::testing;
use crate::writer::Urgency;

#[tokio::test]
async fn no_row_is_written_for_another_attempt_owner_or_state() {
    let (store, _dir) = testing::store().await;
    let fixture = Fixture::new(store.stores(), Arc::new(ManualClock::default()));
    let (place, lease) = fixture.running().await;
    let queued = fixture.run(&place).await;
    let run = fixture.on_record(&place, lease.run).await.run;
    let mut stored = Vec::new();
    for lease in [
        Lease {
            attempt: 2,
            ..lease
        },
        Lease {
            owner: owner(2),
            ..lease
        },
        Lease {
            run: queued.id,
            ..lease
        },
        lease,
    ] {
        let run = run.clone();
        let write = store.writer.write(Urgency::Normal, async move |conn| {
            let held = table::store_held(conn, &run, false, lease).await?;
            let queued = table::store_queued(conn, &run).await?;
            Ok::<_, hango_ports::StoreFailure>((held, queued))
        });
        stored.push(write.await.map_err(|error| error.to_string()));
    }

    let refused = Ok((false, false));
    let expected = [refused.clone(), refused.clone(), refused, Ok((true, false))];
    assert_eq!(stored, expected);
}

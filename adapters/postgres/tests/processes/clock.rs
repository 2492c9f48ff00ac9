//! By the database's own clock: what has to wait for somebody is dated behind the wait.

use std::future::Future;

use futures::future::join;
use hango_conformance::{no_limits, owner};
use hango_domain::MessageId;
use hango_domain::conversation::{Block, NewMessage};
use hango_domain::queue::ClaimLimits;
use sqlx::{AssertSqlSafe, Connection};
use uuid::Uuid;

use super::{Processes, claim};

/// Does what has to wait for the row of that id in `table`, which somebody has locked and lets go of
/// unchanged. When he did is in `released.at`.
async fn waiting<T>(
    processes: &Processes,
    table: &str,
    id: Uuid,
    doing: impl Future<Output = T>,
) -> T {
    let mut somebody = processes.somebody().await;
    let mut holding = somebody.begin().await.expect("a transaction begins");
    let lock = format!("select from {table} where id = '{id}' for no key update");
    let lock = sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *holding);
    lock.await.expect("a row can be locked");
    let releasing = async {
        processes.somebody_waits().await;
        let noted = "create table released as select clock_timestamp() as at";
        let noted = sqlx::raw_sql(noted).execute(&mut *holding).await;
        noted.expect("a table can be made");
        holding.commit().await.expect("a transaction ends");
    };
    let (done, ()) = join(doing, releasing).await;
    done
}

/// Who claims under a cap waits for the tenant.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_counted_from_behind_what_its_claim_waited_for() {
    let processes = Processes::by(None).await;
    let place = processes.fixture.place().await;
    processes.fixture.run(&place).await;
    let limits = ClaimLimits {
        running_per_tenant: 1,
        ..no_limits()
    };

    let claiming = claim(&processes.other, owner(2), limits);
    let claimed = waiting(&processes, "tenants", place.tenant.0, claiming).await;

    assert_eq!(claimed.len(), 1);
    let behind = "select count(*) from runs, released
         where started_at >= at and lease_expires_at >= at + interval '30 seconds'";
    assert_eq!(processes.count(behind).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_dated_behind_what_its_acceptance_waited_for() {
    let processes = Processes::by(None).await;
    let fixture = &processes.fixture;
    let place = fixture.place().await;

    let accepting = fixture.run(&place);
    waiting(&processes, "sessions", place.session.id.0, accepting).await;

    let behind = "select count(*) from runs, released where created_at >= at";
    assert_eq!(processes.count(behind).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_dated_behind_what_it_waited_for() {
    let processes = Processes::by(None).await;
    let fixture = &processes.fixture;
    let place = fixture.place().await;
    let message = NewMessage::user(MessageId(fixture.uuid()), vec![Block::text("hello")]);
    let audit = fixture.audit(&place.owner, "message.create", message.id.0);

    let sessions = &fixture.stores.sessions;
    let saying = sessions.append(place.seen(), place.session.id, message, audit, None);
    let said = waiting(&processes, "sessions", place.session.id.0, saying).await;

    said.expect("nothing is pending");
    let behind = "select count(*) from messages, released where created_at >= at";
    assert_eq!(processes.count(behind).await, 1);
}

use hango_domain::retention::Retention;
use hango_domain::run::Change;
use sqlx::{Connection, PgConnection};

use super::*;
use crate::runs::tests::fence::running;

#[tokio::test]
async fn what_others_have_locked_is_passed_over_and_nobody_is_waited_for() {
    let (_store, fixture, place, lease, database) = running().await;
    let end = Change::Finish(fixture.finish(lease, 1));
    fixture.written(end).await;
    fixture.session(&place.owner, place.agent.id).await;
    fixture.clock.advance(Retention::LEAST);
    let request = PruneRequest {
        retention: Retention::new(Retention::LEAST),
        rows: 1000,
    };
    let prune = async || {
        let pruned = fixture.stores.runs.prune(request).await;
        pruned.expect("the store is there")
    };
    let mut other = PgConnection::connect(database.url())
        .await
        .expect("the server is there");
    let mut locks = other.begin().await.expect("transactions begin");
    for lock in [
        "select from runs for no key update",
        "select from sessions for no key update",
    ] {
        let locked = sqlx::raw_sql(lock).execute(&mut *locks).await;
        locked.expect("nobody else has them");
    }

    assert_eq!(prune().await, Pruned::default());

    locks.rollback().await.expect("it can be undone");
    let (runs, sessions) = (prune().await, prune().await);
    assert_eq!((runs.runs, runs.sessions), (1, 0));
    assert_eq!((sessions.runs, sessions.sessions), (0, 2));
    assert_eq!(prune().await, Pruned::default());
}

//! Places: who waits for one, and for how long.

use std::time::Instant;

use futures::FutureExt;
use sqlx::Connection;

use super::*;

#[tokio::test]
async fn who_finds_no_free_place_is_told_so_in_time() {
    let database = TestDatabase::new().await;
    let impatient = Limits {
        patience: Duration::from_millis(300),
        ..limits(database.url(), 1)
    };
    let pool = Pool::new(impatient, Handle::current());
    let held = pool.places.take(None).await.expect("it is free");

    let refused = pool.read(|_| Box::pin(async { Ok::<(), Error>(()) })).await;

    assert!(matches!(refused, Err(Error::NoConnection)));
    held.give_back();
    assert!(is_whole(&pool, 1).await);
}

#[tokio::test]
async fn however_many_there_are_they_leave_a_place_to_others() {
    let database = TestDatabase::new().await;
    let impatient = Limits {
        patience: Duration::from_millis(300),
        ..limits(database.url(), 2)
    };
    let pool = Pool::new(impatient, Handle::current());
    let many = pool.of_many();
    let turns = many.turns.as_ref();
    let one = many.places.take(turns).await.expect("it is free");

    let another = many.places.take(turns).await;
    let other = pool.places.take(None).await;

    assert!(matches!(another, Err(Error::NoConnection)));
    other.expect("it is left to others").give_back();
    one.give_back();
    let next = many.places.take(turns).await;
    next.expect("it is the next one's turn").give_back();
    assert!(is_whole(&pool, 2).await);
}

#[tokio::test]
async fn a_server_without_room_is_waited_for() {
    let cluster = Cluster::start(&Settings {
        extra: vec![("max_connections".to_owned(), "5".to_owned())],
        ..Settings::default()
    })
    .expect("a cluster starts");
    let url = cluster.url("postgres");
    let mut others = Vec::new();
    while let Ok(conn) = PgConnection::connect(&url).await {
        others.push(conn);
    }
    let impatient = Limits {
        patience: Duration::from_millis(300),
        ..limits(&url, 2)
    };
    let pool = Pool::new(impatient, Handle::current());
    let read = || pool.read(|_| Box::pin(async { Ok::<(), Error>(()) }));

    let full = read().await.expect_err("there is no room");
    assert!(full.to_string().contains("too many clients"), "{full}");

    let waiting = Pool::new(limits(&url, 2), Handle::current());
    let waiting = waiting.read(|_| Box::pin(async { Ok::<(), Error>(()) }));
    let mut waiting = Box::pin(waiting);
    assert!(poll!(&mut waiting).is_pending());
    for conn in others.drain(..2) {
        conn.close().await.expect("connections can be closed");
    }
    waiting.await.expect("there is room now");
    read().await.expect("there is room now");
}

#[tokio::test]
async fn closing_lets_work_end_and_leaves_no_connection() {
    let (pool, database) = pool_of_things(2).await;
    let slow = pool.transact(|conn| {
        Box::pin(async {
            let query = sqlx::query("insert into things select 1 from pg_sleep(0.3)");
            query.execute(conn).await?;
            Ok::<_, Error>(())
        })
    });
    let mut slow = Box::pin(slow);
    while pool.places.free() == 2 {
        assert!(poll!(&mut slow).is_pending());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    pool.close().await;

    assert!(slow.now_or_never().is_some_and(|done| done.is_ok()));
    assert!(matches!(add(&pool, 2).await, Err(Error::Closed)));
    let other = Pool::new(limits(database.url(), 1), Handle::current());
    let left = other.read(|conn| {
        let query = sqlx::query_scalar(
            "select count(*) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()",
        );
        Box::pin(async { Ok::<i64, Error>(query.fetch_one(conn).await?) })
    });
    assert_eq!(left.await.ok(), Some(0));
    assert_eq!(things(&other).await, [1]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_waited_for_once_and_not_at_all_by_a_pool_that_closes() {
    let nobody = Limits {
        patience: Duration::from_millis(300),
        ..limits("postgres://nobody@127.0.0.1:1/nothing", 1)
    };
    let patient = Limits {
        patience: BOUND,
        ..nobody.clone()
    };
    let begun = Instant::now();
    let pool = Pool::new(nobody, Handle::current());
    let failed = pool.read(|_| Box::pin(async { Ok::<_, Error>(()) })).await;
    assert!(matches!(failed, Err(Error::Sql(_))), "{failed:?}");
    assert!(
        begun.elapsed() < 3 * Duration::from_millis(300),
        "{:?}",
        begun.elapsed()
    );

    let pool = Pool::new(patient, Handle::current());
    let begun = Instant::now();
    let read = pool.read(|_| Box::pin(async { Ok::<_, Error>(()) }));
    let close = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        pool.close().await;
    };
    let (failed, ()) = tokio::join!(read, close);

    assert!(matches!(failed, Err(Error::Closed)), "{failed:?}");
    assert!(begun.elapsed() < BOUND / 2, "{:?}", begun.elapsed());
}

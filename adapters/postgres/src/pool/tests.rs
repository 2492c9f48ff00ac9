mod places;

use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::poll;
use hango_test_database::{Cluster, Settings, Stop, TestDatabase};
use sqlx::PgConnection;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::{Limits, Pool};
use crate::error::Error;
use crate::lane::Lane;
use crate::testing::{BOUND, Proxy, limits, pool};

/// The backends that serve as many reads at once as there are places: each has one of its own.
async fn backends(pool: &Pool, places: usize) -> Vec<i32> {
    let reads = (0..places).map(|_| {
        pool.read(|conn| {
            let query = sqlx::query_scalar("select pg_backend_pid() from pg_sleep(0.2)");
            Box::pin(async { Ok::<i32, Error>(query.fetch_one(conn).await?) })
        })
    });
    let read = join_all(reads).await.into_iter();
    let mut backends: Vec<_> = read.map(|read| read.expect("reads work")).collect();
    backends.sort_unstable();
    backends.dedup();
    backends
}

/// Every place of the pool is free and of use.
async fn is_whole(pool: &Pool, places: usize) -> bool {
    backends(pool, places).await.len() == places
}

/// Whether somebody left a transaction open on the pool's only connection: all is one then.
async fn left_open(pool: &Pool) -> bool {
    let one = pool.read(|conn| {
        Box::pin(async {
            let transactions = "select pg_current_xact_id()::text";
            let first: String = sqlx::query_scalar(transactions)
                .fetch_one(&mut *conn)
                .await?;
            let second: String = sqlx::query_scalar(transactions).fetch_one(conn).await?;
            Ok::<_, Error>(first == second)
        })
    });
    one.await.expect("reads work")
}

async fn add(pool: &Pool, number: i32) -> Result<(), Error> {
    pool.transact(move |conn| {
        Box::pin(async move {
            let query = sqlx::query("insert into things values ($1)").bind(number);
            query.execute(conn).await?;
            Ok(())
        })
    })
    .await
}

async fn things(pool: &Pool) -> Vec<i32> {
    let read = pool.read(|conn| {
        let query = sqlx::query_scalar("select id from things order by id");
        Box::pin(async { Ok::<_, Error>(query.fetch_all(conn).await?) })
    });
    read.await.expect("reads work")
}

async fn pool_of_things(connections: u32) -> (Pool, TestDatabase) {
    let (pool, database) = pool(connections).await;
    let made = database.execute("create table things (id int)").await;
    made.expect("tables can be made");
    (pool, database)
}

#[tokio::test]
async fn a_caller_that_is_dropped_interrupts_no_transaction() {
    let (pool, _database) = pool_of_things(1).await;

    // Dropped after so many polls: before the connection, in `begin`, in the statement, in `commit`.
    for polls in 1..20 {
        let mut change = Box::pin(add(&pool, polls));
        for _ in 0..polls {
            if poll!(&mut change).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(change);
        assert!(!left_open(&pool).await, "after {polls} polls");
    }

    assert_eq!(things(&pool).await, (1..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_error_undoes_the_transaction() {
    let (pool, _database) = pool_of_things(1).await;

    let refused = pool.transact(|conn| {
        Box::pin(async {
            let query = sqlx::query("insert into things values (1)");
            query.execute(conn).await?;
            Err::<(), _>(Error::ReadOnly)
        })
    });

    assert!(matches!(refused.await, Err(Error::ReadOnly)));
    assert!(!left_open(&pool).await);
    assert!(things(&pool).await.is_empty());
}

/// A server that is nearly PostgreSQL may not know one of the settings.
#[tokio::test]
async fn a_begin_that_is_refused_half_way_leaves_no_transaction_open() {
    let database = TestDatabase::new().await;
    let refused = Limits {
        begin: "begin; set local no_such_setting = 1",
        ..limits(database.url(), 1)
    };
    let pool = Pool::new(refused, Handle::current());

    let refused = add(&pool, 1).await.expect_err("there is no such setting");

    assert!(refused.to_string().contains("no_such_setting"), "{refused}");
    assert!(is_whole(&pool, 1).await);
}

#[tokio::test]
async fn a_connection_in_a_failed_transaction_is_not_used_again() {
    let (pool, _database) = pool(1).await;
    let fail = pool.run(|conn| {
        Box::pin(async {
            let failed = sqlx::raw_sql("begin; select 1 / 0").execute(conn).await;
            assert!(failed.is_err());
            Ok::<_, Error>(())
        })
    });
    fail.await.expect("it says nothing of it");

    let read = pool.read(|conn| {
        let query = sqlx::query("select 1");
        Box::pin(async { Ok::<_, Error>(query.execute(conn).await?) })
    });
    read.await.expect_err("the transaction has failed");
    assert!(is_whole(&pool, 1).await);
}

fn intended((): ()) -> Result<(), Error> {
    panic!("as intended")
}

#[tokio::test]
async fn work_that_panics_is_undone_and_costs_no_place() {
    let (pool, _database) = pool_of_things(1).await;

    let panicked = pool.transact(|conn| {
        Box::pin(async {
            let query = sqlx::query("insert into things values (1)");
            query.execute(conn).await.map_err(Error::from)?;
            intended(())
        })
    });

    assert!(matches!(panicked.await, Err(Error::Interrupted)));
    assert!(!left_open(&pool).await);
    assert!(things(&pool).await.is_empty());
}

#[tokio::test]
async fn connections_that_die_silently_cost_no_place() {
    let database = TestDatabase::new().await;
    let proxy = Proxy::before(database.url()).await;
    let places = 3;
    let impatient = Limits {
        connect: proxy.through(database.url()),
        patience: Duration::from_millis(300),
        ..limits(database.url(), 3)
    };
    let longest = impatient.patience + impatient.longest_use();
    let pool = Pool::new(impatient, Handle::current());
    assert!(is_whole(&pool, places).await);

    proxy.cut();
    let waited = timeout(longest + BOUND, async {
        let (kept, dropped) = (
            add(&pool, 1),
            timeout(Duration::from_millis(20), add(&pool, 2)),
        );
        let (kept, dropped) = tokio::join!(kept, dropped);
        assert!(
            kept.is_err(),
            "it was not asked whether it lives: it was in use just now"
        );
        assert!(dropped.is_err(), "its caller did not wait");
    });
    waited.await.expect("every wait has an end");

    assert!(is_whole(&pool, places).await);
}

#[tokio::test]
async fn a_connection_that_died_while_it_lay_idle_is_not_used() {
    let database = TestDatabase::new().await;
    let proxy = Proxy::before(database.url()).await;
    let direct = limits(database.url(), 2);
    let pool = Pool::new(
        Limits {
            connect: proxy.through(database.url()),
            fresh: Duration::ZERO,
            ..direct
        },
        Handle::current(),
    );
    assert!(is_whole(&pool, 2).await);
    proxy.cut();

    assert!(is_whole(&pool, 2).await);
}

/// Adds a thing unless it is there; how many were added.
fn add_once(conn: &mut PgConnection, id: i32) -> BoxFuture<'_, Result<u64, Error>> {
    let query = sqlx::query(
        "insert into things select $1 where not exists (select from things where id = $1)",
    );
    let query = query.bind(id);
    Box::pin(async { Ok(query.execute(conn).await?.rows_affected()) })
}

#[tokio::test]
async fn a_statement_whose_answer_is_lost_is_repeated_where_it_changes_nothing_again() {
    let database = TestDatabase::new().await;
    let made = database.execute("create table things (id int)").await;
    made.expect("tables can be made");
    let proxy = Proxy::before(database.url()).await;
    let direct = limits(database.url(), 1);
    let limits = Limits {
        connect: proxy.through(database.url()),
        ..direct
    };
    let pool = Pool::new(limits, Handle::current());
    assert_eq!(pool.run(|conn| add_once(conn, 1)).await.ok(), Some(1));

    proxy.lose();
    assert_eq!(pool.repeat(|conn| add_once(conn, 2)).await.ok(), Some(0));
    assert_eq!(pool.run(|conn| add_once(conn, 3)).await.ok(), Some(1));
    proxy.lose();
    let unknown = pool.run(|conn| add_once(conn, 4)).await;
    unknown.expect_err("nobody knows");

    assert!(!proxy.loses());
    assert_eq!(things(&pool).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn work_that_does_not_end_is_given_up_and_its_connection_closed() {
    let database = TestDatabase::new().await;
    let impatient = Limits {
        patience: Duration::from_millis(200),
        ..limits(database.url(), 1)
    };
    let pool = Pool::new(impatient, Handle::current());

    let hung = pool.run(|conn| {
        let query = sqlx::query("select pg_sleep(60)");
        Box::pin(async {
            query.execute(conn).await?;
            Ok(())
        })
    });

    assert!(matches!(hung.await, Err(Error::NoAnswer)));
    assert!(is_whole(&pool, 1).await);
}

#[tokio::test]
async fn whoever_is_told_to_go_comes_back() {
    let (pool, database) = pool_of_things(3).await;
    let everybody = "select pg_terminate_backend(pid) from pg_stat_activity
                     where datname = current_database() and pid <> pg_backend_pid()";

    for number in 1..5 {
        assert!(is_whole(&pool, 3).await);
        database.execute(everybody).await.expect("they go");

        // Nothing was begun, so nobody notices.
        add(&pool, number).await.expect("it is repeated");
    }

    assert_eq!(things(&pool).await, [1, 2, 3, 4]);
    database.execute(everybody).await.expect("they go");
    assert_eq!(things(&pool).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn those_who_lock_each_other_out_both_get_through() {
    let (pool, database) = pool_of_things(2).await;
    let filled = "insert into things values (0), (1)";
    database.execute(filled).await.expect("rows can be added");
    let meet = std::sync::Arc::new(tokio::sync::Barrier::new(2));

    let one_by_one = [[0, 1], [1, 0]].map(|order| {
        let meet = std::sync::Arc::clone(&meet);
        pool.transact(move |conn| {
            let meet = std::sync::Arc::clone(&meet);
            Box::pin(async move {
                let soon = sqlx::raw_sql("set local deadlock_timeout = '10ms'");
                soon.execute(&mut *conn).await?;
                for id in order {
                    let lock = sqlx::query("update things set id = id where id = $1").bind(id);
                    lock.execute(&mut *conn).await?;
                    // Both have their first one; whoever repeats has nobody to meet.
                    let _ = timeout(Duration::from_millis(200), meet.wait()).await;
                }
                Ok::<_, Error>(())
            })
        })
    });

    for done in join_all(one_by_one).await {
        done.expect("one is undone, and repeated");
    }
}

#[tokio::test]
async fn a_server_that_is_restarted_is_found_again() {
    let cluster = Cluster::start(&Settings::default()).expect("a cluster starts");
    let pool = Pool::new(limits(&cluster.url("postgres"), 3), Handle::current());
    for how in [Stop::Immediate, Stop::Fast] {
        assert!(is_whole(&pool, 3).await);
        cluster.stop(how).expect("it stops");

        let meanwhile = pool.read(|_| Box::pin(async { Ok::<(), Error>(()) }));
        let mut meanwhile = Box::pin(meanwhile);
        assert!(poll!(&mut meanwhile).is_pending());
        cluster.resume().expect("it starts");

        meanwhile.await.expect("it was waited for");
    }
    assert!(is_whole(&pool, 3).await);
}

#[tokio::test]
async fn the_lane_is_free_when_the_pool_is_not() {
    let (pool, database) = pool(1).await;
    let lane = Lane::new(limits(database.url(), 9)).expect("there are threads");
    let held = pool.places.take(None).await.expect("it is free");

    let pids = (0..3).map(|_| {
        lane.run(|conn| {
            let query = sqlx::query_scalar("select pg_backend_pid()");
            Box::pin(async { Ok::<i32, Error>(query.fetch_one(conn).await?) })
        })
    });
    let pids: Vec<_> = join_all(pids).await.into_iter().flatten().collect();

    assert_eq!(pids.len(), 3);
    assert!(
        pids.iter().all(|pid| *pid == pids[0]),
        "it is one connection"
    );
    held.give_back();
}

#[tokio::test]
async fn the_lane_works_where_the_caller_has_another_runtime() {
    let (_pool, database) = pool(1).await;
    let lane = Lane::new(limits(database.url(), 1)).expect("there are threads");
    let read = || {
        lane.run(|conn| {
            let query = sqlx::query_scalar("select 1");
            Box::pin(async { Ok::<i32, Error>(query.fetch_one(conn).await?) })
        })
    };

    // The first runtime is gone when the second one uses the connection that it caused.
    for _ in 0..2 {
        let one = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime.expect("there are runtimes").block_on(read())
            });
            thread.join().expect("it does not panic")
        });
        assert_eq!(one.expect("it answers"), 1);
    }
}

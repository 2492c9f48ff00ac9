//! What a commit that many share owes to each.

use std::sync::Arc;

use hango_ports::StoreFailure;

use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::Urgency::{Normal, Urgent};
use super::*;
use crate::SqliteStore;
use crate::testing;

type Answer = Result<(), StoreFailure>;

/// Notes a word, in the order of the notes.
async fn note(conn: &mut SqliteConnection, word: &str) -> Answer {
    sqlx::query("insert into notes (word) values (?)")
        .bind(word)
        .execute(conn)
        .await
        .map_err(Error::from)?;
    Ok(())
}

async fn run(conn: &mut SqliteConnection, statement: &'static str) -> Answer {
    control(conn, statement).await?;
    Ok(())
}

/// A store with a table for words.
async fn store() -> (Arc<SqliteStore>, TempDir) {
    let (store, dir) = testing::store().await;
    let made = store.writer.write(Normal, async |conn| -> Answer {
        run(
            conn,
            "create table notes (n integer primary key, word text not null) strict",
        )
        .await?;
        run(
            conn,
            "create table links (n integer references notes (n) deferrable initially deferred)",
        )
        .await
    });
    made.await.expect("a table is made");
    (store, dir)
}

async fn words(store: &SqliteStore) -> Vec<String> {
    sqlx::query_scalar("select word from notes order by n")
        .fetch_all(&store.readers)
        .await
        .expect("reads work")
}

/// Lets the writer wait inside of a commit: what is handed in meanwhile is one batch, behind it.
async fn hold(store: &SqliteStore) -> oneshot::Sender<()> {
    let (go, wait) = oneshot::channel();
    let (begun, is_begun) = oneshot::channel();
    let task = Task {
        closure: Some(async move |_: &mut SqliteConnection| -> Answer {
            let _ = begun.send(());
            let _ = wait.await;
            Ok(())
        }),
        result: None,
        caller: oneshot::channel().0,
        span: Span::none(),
    };
    let sent = store.writer.normal.send(Box::new(task)).await;
    assert!(sent.is_ok());
    is_begun.await.expect("the writer takes the job");
    go
}

/// Hands a job in, and returns when it waits.
async fn hand_in<F>(store: &Arc<SqliteStore>, urgency: Urgency, job: F) -> JoinHandle<Answer>
where
    F: AsyncFnOnce(&mut SqliteConnection) -> Answer + Send + 'static,
{
    let queue = match urgency {
        Urgent => &store.writer.urgent,
        Normal => &store.writer.normal,
    };
    let room = queue.capacity();
    let waiting = Arc::clone(store);
    let answer = tokio::spawn(async move { waiting.writer.write(urgency, job).await });
    while queue.capacity() == room {
        tokio::task::yield_now().await;
    }
    answer
}

async fn answer(of: JoinHandle<Answer>) -> Answer {
    of.await.expect("callers do not panic")
}

#[tokio::test]
async fn one_that_fails_is_undone_alone() {
    let (store, _dir) = store().await;
    let go = hold(&store).await;
    let first = hand_in(&store, Normal, async |conn| note(conn, "first").await).await;
    let failing = hand_in(&store, Normal, async |conn| {
        note(conn, "failing").await?;
        run(conn, "insert into nowhere values (1)").await
    });
    let failing = failing.await;
    let panicking = hand_in(&store, Normal, async |conn| {
        note(conn, "panicking").await?;
        panic!("a defect in one job");
    });
    let panicking = panicking.await;
    let last = hand_in(&store, Normal, async |conn| note(conn, "last").await).await;

    go.send(()).expect("the writer waits");

    assert!(answer(first).await.is_ok());
    assert!(answer(failing).await.is_err());
    assert!(answer(panicking).await.is_err());
    assert!(answer(last).await.is_ok());
    assert_eq!(words(&store).await, ["first", "last"]);
}

#[tokio::test]
async fn a_commit_that_fails_fails_for_all() {
    let (store, _dir) = store().await;
    let go = hold(&store).await;
    let first = hand_in(&store, Normal, async |conn| note(conn, "first").await).await;
    let refused = hand_in(&store, Normal, async |_| Err(Error::Closed.into())).await;
    let dangling = hand_in(&store, Normal, async |conn| {
        run(conn, "insert into links values (1000)").await
    });
    let dangling = dangling.await;

    go.send(()).expect("the writer waits");

    for job in [first, refused, dangling] {
        let answer = answer(job).await;
        assert!(
            matches!(
                answer,
                Err(StoreFailure::Corrupt {
                    column: "constraint",
                    ..
                })
            ),
            "{answer:?}"
        );
    }
    assert!(words(&store).await.is_empty());
    let next = store
        .writer
        .write(Normal, async |conn| note(conn, "next").await);
    assert!(next.await.is_ok());
}

#[tokio::test]
async fn who_goes_away_interrupts_nothing() {
    let (store, _dir) = store().await;
    let go = hold(&store).await;
    let left = hand_in(&store, Normal, async |conn| {
        note(conn, "left").await?;
        note(conn, "behind").await
    });
    let left = left.await;
    left.abort();

    go.send(()).expect("the writer waits");
    store.close().await;

    let store = reopened(&store).await;
    assert_eq!(words(&store).await, ["left", "behind"]);
}

#[tokio::test]
async fn what_is_urgent_goes_first() {
    let (store, _dir) = store().await;
    let go = hold(&store).await;
    let normal = hand_in(&store, Normal, async |conn| note(conn, "normal").await).await;
    let urgent = hand_in(&store, Urgent, async |conn| note(conn, "urgent").await).await;

    go.send(()).expect("the writer waits");

    assert!(answer(normal).await.is_ok() && answer(urgent).await.is_ok());
    assert_eq!(words(&store).await, ["urgent", "normal"]);
}

#[tokio::test]
async fn no_room_is_told_as_no_room_and_ends_when_there_is_some() {
    let (store, _dir) = store().await;
    let limited = store.writer.write(Normal, async |conn| -> Answer {
        run(conn, "pragma max_page_count = 1").await
    });
    limited.await.expect("the limit is set");

    let big = "x".repeat(1 << 20);
    let copy = big.clone();
    let full = store
        .writer
        .write(Normal, async move |conn| note(conn, &big).await);
    let full = full.await;
    assert!(matches!(full, Err(StoreFailure::OutOfSpace(_))), "{full:?}");

    let freed = store.writer.write(Normal, async |conn| -> Answer {
        run(conn, "pragma max_page_count = 1000000").await
    });
    freed.await.expect("the limit is lifted");
    let again = store
        .writer
        .write(Normal, async move |conn| note(conn, &copy).await);
    assert!(again.await.is_ok());
}

#[tokio::test]
async fn closing_finishes_what_waits_and_refuses_the_rest() {
    let (store, _dir) = store().await;
    let go = hold(&store).await;
    let waiting = hand_in(&store, Normal, async |conn| note(conn, "waiting").await).await;
    let closing = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.close().await })
    };
    go.send(()).expect("the writer waits");
    closing.await.expect("closing does not panic");

    assert!(answer(waiting).await.is_ok());
    let late = store
        .writer
        .write(Normal, async |conn| note(conn, "late").await);
    assert!(matches!(late.await, Err(StoreFailure::Unavailable(_))));
    let store = reopened(&store).await;
    assert_eq!(words(&store).await, ["waiting"]);
}

async fn reopened(store: &SqliteStore) -> SqliteStore {
    let options = crate::Options::new(store.clock.clone(), true);
    let opened = SqliteStore::open(&store.path, options).await;
    opened.expect("the file is free again")
}

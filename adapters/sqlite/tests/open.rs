//! Opening and closing: one executor, tools beside it, and no empty database in the place of a full one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hango_conformance::{Fixture, ManualClock};
use hango_sqlite::{OpenError, Options, SqliteStore};
use tempfile::TempDir;

fn place() -> (PathBuf, TempDir) {
    let dir = tempfile::tempdir().expect("there is room for a directory");
    (dir.path().join("data/hango.db"), dir)
}

async fn open(path: &Path, execute: bool) -> Result<SqliteStore, OpenError> {
    let clock = Arc::new(ManualClock::default());
    SqliteStore::open(path, Options::new(clock, execute)).await
}

async fn opened(path: &Path) -> Arc<SqliteStore> {
    let store = open(path, true).await.expect("the database is opened");
    store.migrate().await.expect("the schema is brought up");
    Arc::new(store)
}

fn working(store: &Arc<SqliteStore>) -> Fixture {
    Fixture::new(store.stores(), Arc::new(ManualClock::default()))
}

/// A database with something in it, closed.
async fn full(path: &Path) {
    let store = opened(path).await;
    working(&store).running().await;
    store.close().await;
}

fn said(opened: Result<SqliteStore, OpenError>) -> String {
    opened
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

#[tokio::test]
async fn a_second_executor_is_refused_and_told_what_to_do() {
    let (path, _dir) = place();
    let first = opened(&path).await;

    let second = open(&path, true).await;
    assert!(matches!(second, Err(OpenError::Locked { .. })));
    assert!(said(second).contains("stop it first"));

    first.close().await;
    assert!(open(&path, true).await.is_ok());
}

#[tokio::test]
async fn a_tool_works_beside_the_executor() {
    let (path, _dir) = place();
    let server = opened(&path).await;
    let tool = open(&path, false).await.expect("tools take no lock");
    let tool = Arc::new(tool);

    let place = working(&tool).place().await;

    let sessions = server.stores().sessions;
    let found = sessions.find(place.seen(), place.session.id).await;
    assert_eq!(found.expect("reads work"), Some(place.session));
}

#[tokio::test]
async fn a_tool_makes_no_database() {
    let (path, _dir) = place();

    assert!(matches!(
        open(&path, false).await,
        Err(OpenError::Missing { .. })
    ));
    assert!(!path.exists());
}

#[tokio::test]
async fn nobody_else_reads_what_is_made() {
    let (path, _dir) = place();
    let store = opened(&path).await;
    working(&store).place().await;

    let mode = |path: &Path| {
        fs::metadata(path)
            .map(|file| file.permissions().mode() & 0o777)
            .ok()
    };
    assert_eq!(path.parent().and_then(mode), Some(0o700));
    for end in ["", "-wal", "-shm", ".lock"] {
        let file = format!("{}{end}", path.display());
        assert_eq!(mode(Path::new(&file)), Some(0o600), "{file}");
    }
}

#[tokio::test]
async fn a_closed_database_is_one_file() {
    let (path, _dir) = place();
    full(&path).await;

    for end in ["-wal", "-shm", ".new"] {
        let file = format!("{}{end}", path.display());
        assert!(!Path::new(&file).exists(), "{file}");
    }
    let store = opened(&path).await;
    assert!(store.verify().await.is_ok());
}

#[tokio::test]
async fn what_is_not_a_database_is_refused_and_left_as_it_is() {
    let text = b"these are my notes, not a database".repeat(200);
    for content in [
        text.as_slice(),
        b"SQLite format 3\0 and then nothing",
        b"short",
        b"",
    ] {
        let (path, dir) = place();
        fs::create_dir(dir.path().join("data")).expect("there is room");
        fs::write(&path, content).expect("there is room");

        for execute in [true, false] {
            let refused = open(&path, execute).await;
            assert!(
                matches!(refused, Err(OpenError::Damaged { .. })),
                "{}",
                said(refused)
            );
        }
        assert_eq!(fs::read(&path).ok().as_deref(), Some(content));
    }
}

#[tokio::test]
async fn a_truncated_database_is_refused() {
    let (path, _dir) = place();
    full(&path).await;
    let content = fs::read(&path).expect("the file is there");

    for kept in [content.len() - 1000, content.len() / 2, 4096, 1000] {
        fs::write(&path, &content[..kept]).expect("there is room");
        let refused = open(&path, true).await;
        assert!(
            matches!(refused, Err(OpenError::Damaged { .. })),
            "{kept}: {}",
            said(refused)
        );
    }
    fs::write(&path, &content).expect("there is room");
    assert!(open(&path, true).await.is_ok());
}

#[tokio::test]
async fn a_file_with_another_name_is_refused_since_that_would_be_a_way_around_its_lock() {
    let (path, dir) = place();
    full(&path).await;
    let other = dir.path().join("other.db");
    fs::hard_link(&path, &other).expect("one file system");

    let refused = open(&other, true).await;
    assert!(matches!(refused, Err(OpenError::Unusable { .. })));

    fs::remove_file(&other).expect("it is there");
    assert!(open(&path, true).await.is_ok());
}

#[tokio::test]
async fn rotten_pages_are_found_when_asked_for() {
    let (path, _dir) = place();
    full(&path).await;
    let mut content = fs::read(&path).expect("the file is there");
    for page in content.chunks_mut(4096).skip(2) {
        page[..64].fill(0xee);
    }
    fs::write(&path, &content).expect("there is room");

    match open(&path, false).await {
        Ok(store) => assert!(matches!(
            store.verify().await,
            Err(OpenError::Damaged { .. })
        )),
        refused => assert!(matches!(refused, Err(OpenError::Damaged { .. }))),
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_used_is_named() {
    let (_, dir) = place();
    let file = dir.path().join("file");
    fs::write(&file, "in the way").expect("there is room");

    let refused = open(&file.join("hango.db"), true).await;

    assert!(matches!(refused, Err(OpenError::Unusable { .. })));
    assert!(said(refused).contains("file/hango.db"));
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash() {
    let (path, dir) = place();
    let store = opened(&path).await;
    let fixture = working(&store);
    let (place, lease) = fixture.running().await;

    // What a crash leaves: the files as they are at some moment, nothing closed.
    let copy = dir.path().join("copy.db");
    fs::copy(&path, &copy).expect("there is room");
    fs::copy(path.with_extension("db-wal"), copy.with_extension("db-wal")).expect("there is room");

    let after = Arc::new(open(&copy, true).await.expect("the log is read"));
    let before = fixture.on_record(&place, lease.run).await;
    assert_eq!(working(&after).on_record(&place, lease.run).await, before);
}

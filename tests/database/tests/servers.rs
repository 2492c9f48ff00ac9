//! Servers come and go as they should, whatever becomes of the tests.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hango_test_database::{Cluster, Settings, Stop, TestDatabase};
use sqlx::{Connection, PgConnection};

async fn select_one(url: &str) -> anyhow::Result<i32> {
    let mut conn = PgConnection::connect(url).await?;
    Ok(sqlx::query_scalar("select 1").fetch_one(&mut conn).await?)
}

#[tokio::test]
async fn every_test_has_an_empty_database_of_its_own() {
    let first = TestDatabase::new().await;
    let second = TestDatabase::new().await;
    for database in [&first, &second] {
        let made = database.execute("create table things (id int)").await;
        made.expect("nobody else made it");
    }
    let url = first.url().to_owned();
    drop(first);

    assert!(select_one(&url).await.is_err());
    assert_eq!(select_one(second.url()).await.ok(), Some(1));
}

#[tokio::test]
async fn a_cluster_is_stopped_and_started_again_where_it_was() {
    let cluster = Cluster::start(&Settings {
        extra: vec![("work_mem".to_owned(), "7MB".to_owned())],
        ..Settings::default()
    })
    .expect("a cluster starts");
    let url = cluster.url("postgres");
    let made = cluster
        .execute("postgres", "create table kept (id int)")
        .await;
    made.expect("statements are executed");

    for how in [Stop::Immediate, Stop::Fast] {
        cluster.stop(how).expect("it stops");
        assert!(select_one(&url).await.is_err());
        cluster.resume().expect("it starts");
        let kept = cluster.execute("postgres", "select id from kept").await;
        kept.expect("what it stored is there");
    }

    let mut conn = PgConnection::connect(&url).await.expect("it is there");
    let work_mem: String = sqlx::query_scalar("show work_mem")
        .fetch_one(&mut conn)
        .await
        .expect("it answers");
    assert_eq!(work_mem, "7MB");
}

#[test]
fn a_cluster_that_cannot_start_says_why() {
    let refused = Cluster::start(&Settings {
        extra: vec![("no_such_setting".to_owned(), "1".to_owned())],
        ..Settings::default()
    });
    let why = refused.err().expect("it cannot start").to_string();
    assert!(why.contains("no_such_setting"), "{why}");
}

/// What the process that is killed writes before it waits for that.
const READY: &str = "cluster of the killed process: ";

/// Not a test: what [`nothing_is_left_of_a_process_that_is_killed`] kills.
#[test]
#[ignore = "it waits to be killed"]
fn a_process_that_waits_to_be_killed() {
    let cluster = Cluster::start(&Settings::default()).expect("a cluster starts");
    println!("{READY}{}", cluster.port());
    std::thread::sleep(Duration::from_mins(1));
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_of_a_process_that_is_killed() {
    use std::io::{BufRead, BufReader};

    let own = std::env::current_exe().expect("this is a program");
    let mut killed = Command::new(own)
        .args(["--ignored", "--nocapture", "--exact"])
        .arg("a_process_that_waits_to_be_killed")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = killed.stdout.take().expect("its output is piped");
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let port = lines
        .find_map(|line| line.split_once(READY).map(|(_, port)| port.to_owned()))
        .expect("its cluster starts");
    let is_there = || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok();
    assert!(is_there());
    let directories = directories_of(killed.id());
    assert!(!directories.is_empty());

    killed.kill().expect("it can be killed");
    killed.wait().expect("it ends");

    let late = Instant::now() + Duration::from_secs(20);
    while is_there() || directories.iter().any(|path| Path::new(path).exists()) {
        assert!(Instant::now() < late, "{directories:?} are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(target_os = "linux")]
/// The directories of clusters that a process guards, as its children were told.
fn directories_of(process: u32) -> Vec<String> {
    let children = format!("/proc/{process}/task");
    let tasks = std::fs::read_dir(children).into_iter().flatten().flatten();
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let words = children.flat_map(|list| {
        let children: Vec<_> = list.split_whitespace().map(str::to_owned).collect();
        children
    });
    let commands = words
        .filter_map(|child| std::fs::read_to_string(format!("/proc/{child}/cmdline")).ok())
        .flat_map(|line| line.split('\0').map(str::to_owned).collect::<Vec<_>>());
    commands
        .filter(|word| word.contains("/hango-postgres-"))
        .collect()
}

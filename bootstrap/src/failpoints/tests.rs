//! That points are named, counted and acted upon as the variable says.

use std::time::Duration;

use async_trait::async_trait;
use hango_ports::StoreFailure;
use hango_ports::store::StoreHealth;
use tokio::time::Instant;

use super::*;

fn refused(text: &str) -> String {
    Failpoints::parse(text).err().unwrap_or_default()
}

/// A failpoint as it prints itself.
fn read(text: &str) -> String {
    let read = Failpoints::parse(text).map(|points| format!("{:?}", points.0));
    read.unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn a_failpoint_has_a_point_an_action_and_the_passing_that_it_waits_for() {
    assert_eq!(
        read("store.claim.before:kill"),
        "[store.claim.before:Kill:1]"
    );
    assert_eq!(
        read("store.after:stop:7, tool.call.after:sleep(250):2+"),
        "[store.after:Stop:7, tool.call.after:Sleep(250ms):2+]"
    );
    assert_eq!(
        read("tool.call.before@fetch:abort:1+"),
        "[tool.call.before@fetch:Abort:1+]"
    );
    assert_eq!(read(""), "[]");
}

#[test]
fn what_is_no_failpoint_is_refused_with_what_there_is() {
    let names = refused("store.clam.before:kill");
    for known in [
        "store.claim.before",
        "sessions.append.after",
        "provider.stream.before",
        "tool.call.after",
    ] {
        assert!(names.contains(known), "{names}");
    }
    assert!(refused("store.before:die").contains("abort"));
    assert!(refused("store.before:sleep(soon)").contains("sleep(ms)"));
    assert!(refused("store.before:kill:0").contains("no passing"));
    assert!(refused("store.before:kill:x").contains("no passing"));
    assert!(refused("store.before").contains("point:action"));
    assert!(refused("store.before:kill:1:2").contains("point:action"));
}

/// Always well.
struct Well;

#[async_trait]
impl StoreHealth for Well {
    async fn check(&self) -> Result<(), StoreFailure> {
        Ok(())
    }
}

/// The store's health with those points.
fn health(text: &str) -> impl AsyncFn() -> Result<(), StoreFailure> {
    let points = Failpoints::parse(text).unwrap_or_else(|why| panic!("{why}"));
    let armed = stores::Armed::<dyn StoreHealth>::new(Arc::new(Well), &points);
    async move || armed.check().await
}

#[tokio::test]
async fn a_point_is_counted_from_one_and_fails_that_passing_only() {
    let check = health("health.check.before:error:2");

    let answers = [
        check().await.is_ok(),
        check().await.is_ok(),
        check().await.is_ok(),
    ];

    assert_eq!(answers, [true, false, true]);
}

#[tokio::test]
async fn a_point_with_a_plus_fails_from_that_passing_on() {
    let check = health("health.after:error:2+");

    let answers = [
        check().await.is_ok(),
        check().await.is_ok(),
        check().await.is_ok(),
    ];

    assert_eq!(answers, [true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn a_call_sleeps_where_it_is_told_to() {
    let check = health("health.before:sleep(700)");
    let begun = Instant::now();

    check().await.expect("it only waits");

    assert_eq!(begun.elapsed(), Duration::from_millis(700));
}

#[tokio::test]
#[should_panic(expected = "failpoint health.check.after")]
async fn a_call_panics_where_it_is_told_to() {
    let check = health("health.check.after:panic");

    let _ = check().await;
}

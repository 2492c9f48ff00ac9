//! Retention: what is old is removed while everything else goes on.

use serde_json::{Value, json};

use super::support::history;
use super::support::messages;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::until::until;
use super::support::world::{Plan, World};

on_both_stores! {
    what_is_old_is_removed_and_what_is_young_stays
}

/// Runs named `tool…` ask for one tool.
fn model(ask: &Ask) -> Reply {
    if ask.run.starts_with("tool") && ask.turn == 1 {
        Reply::calls([("safe", json!({"n": 1}))])
    } else {
        Reply::text("all done")
    }
}

/// Waits until something is not there any more.
async fn gone(world: &World, path: &str) {
    let gone = async || (world.api.get(path).await.status == 404).then_some(());
    until("it is removed", gone).await;
}

fn texts(said: &[Value]) -> Vec<String> {
    said.iter().map(messages::text).collect()
}

async fn what_is_old_is_removed_and_what_is_young_stays(kind: Kind) {
    let world = Plan::on(kind, &[("HANGO_RETENTION", "2m")])
        .await
        .start(model)
        .await;
    let idle = world.start_run("tool one").await;
    let used = world.start_run("tool two").await;
    let young = world.start_run("tool three").await;
    history::all_ended(&world, "succeeded").await;
    let kept = world.api.messages(&used.session).await;
    let as_it_was = world.api.run(&young.id).await;
    let store = world.home.store();
    let audited = store.count("audit_events").await;

    for run in [&idle, &used] {
        store.age_runs(&run.session).await;
    }
    store.age_session(&idle.session).await;

    for run in [&idle, &used] {
        gone(&world, &format!("/v1/runs/{}", run.id)).await;
        let calls = format!("/v1/runs/{}/tool-calls", run.id);
        world.api.get(&calls).await.expect(404);
        assert!(store.events(&run.id).await.is_empty());
    }
    let session = format!("/v1/sessions/{}", idle.session);
    gone(&world, &session).await;
    let runs = format!("{session}/runs");
    let refused = world.api.post(&runs, &json!({"input": "late"})).await;
    refused.expect(404);
    // What was said in a session that is used stays, and its next run has all of it.
    assert_eq!(world.api.messages(&used.session).await, kept);
    let next = world.start_run_in(&used.session, "next").await;
    assert_eq!(world.api.ended(&next.id).await["state"], "succeeded");
    let said = texts(&world.api.messages(&used.session).await);
    let mut expected = texts(&kept);
    expected.extend(["next".to_owned(), "all done".to_owned()]);
    assert_eq!(said, expected);
    let asked = &world.provider.asked_for("next")[0].ask.messages;
    let history = asked.iter().filter(|message| message["role"] != "system");
    assert_eq!(history.count(), kept.len() + 1, "{asked:#?}");
    assert_eq!(world.api.run(&young.id).await, as_it_was);
    assert_eq!(store.count("runs").await, 2);
    // Who did what stays on record; the late run, which was refused, and the next one are there too.
    assert_eq!(store.count("audit_events").await, audited + 2);
}

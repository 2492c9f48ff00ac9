//! Requests that are repeated with their key, and requests that come all at once: how many things they make.

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::{Value, json};

use super::support::api::{Answer, list, text};
use super::support::gate::Gate;
use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::world::{Plan, World};

on_both_stores! {
    d35_fifty_posts_with_one_key_make_one_run
    d35_a_post_is_repeated_after_a_crash_behind_its_commit
    d34_two_hundred_posts_at_a_cap_of_five_leave_five
}

/// Posts a run with a key.
async fn post(world: &World, session: &str, key: &str) -> Result<Answer, reqwest::Error> {
    let path = format!("/v1/sessions/{session}/runs");
    let body = json!({"input": "one", "metadata": {"n": 0.1}});
    world.api.post_once(&path, key, &body).await
}

/// The session's runs.
async fn runs(world: &World, session: &str) -> Vec<Value> {
    let path = format!("/v1/sessions/{session}/runs?limit=200");
    list(&world.api.get(&path).await.expect(200))
}

async fn d35_fifty_posts_with_one_key_make_one_run(kind: Kind) {
    let world = Plan::on(kind, &[]).await;
    let world = world.start(|_| Reply::text("all done")).await;
    let session = world.api.open_session().await;

    let posts = (0..50).map(|_| post(&world, &session, "k"));
    let answers = join_all(posts).await;

    let mut bodies = Vec::new();
    let mut made = 0;
    for answer in answers {
        let answer = answer.expect("the server answers");
        made += usize::from(answer.replayed.is_none());
        bodies.push(answer.expect(202));
    }
    assert_eq!(made, 1);
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    world.accepted_as(&session, text(&bodies[0]["id"]), "one");
    history::all_ended(&world, "succeeded").await;
    assert_eq!(runs(&world, &session).await.len(), 1);
    let again = post(&world, &session, "k")
        .await
        .expect("the server answers");
    assert_eq!(again.replayed.as_deref(), Some("true"));
    assert_eq!(again.expect(202), bodies[0]);
}

async fn d35_a_post_is_repeated_after_a_crash_behind_its_commit(kind: Kind) {
    let dies = [("HANGO_FAILPOINT", "store.accept.after:kill:1")];
    let world = Plan::on(kind, &dies).await;
    let mut world = world.start(|_| Reply::text("all done")).await;
    let session = world.api.open_session().await;
    let lost = post(&world, &session, "k").await;
    assert!(lost.is_err(), "{lost:?}");
    world.home.set("HANGO_FAILPOINT", "");
    world.restart().await;

    let again = post(&world, &session, "k")
        .await
        .expect("the server answers");

    assert_eq!(again.replayed.as_deref(), Some("true"));
    let run = again.expect(202);
    assert_eq!(run["state"], "queued");
    world.accepted_as(&session, text(&run["id"]), "one");
    history::all_ended(&world, "succeeded").await;
    assert_eq!(runs(&world, &session).await.len(), 1);
    assert_eq!(world.provider.times("one"), [1]);
}

async fn d34_two_hundred_posts_at_a_cap_of_five_leave_five(kind: Kind) {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |_: &Ask| Reply::text("all done").held_after(1, &held);
    let settings = [("HANGO_MAX_QUEUED_RUNS_PER_SESSION", "5")];
    let world = Plan::on(kind, &settings).await.start(model).await;
    let session = world.api.open_session().await;
    let path = format!("/v1/sessions/{session}/runs");

    let posts = (0..200).map(|n| {
        let (world, path) = (&world, &path);
        async move {
            let input = format!("run {n}");
            let answer = world.api.post(path, &json!({"input": input})).await;
            (input, answer)
        }
    });
    let answers = join_all(posts).await;

    let mut refused = BTreeMap::new();
    let mut accepted = BTreeMap::new();
    for (input, answer) in answers {
        if answer.status == 202 {
            let run = (text(&answer.body["id"]), input);
            accepted.insert(text(&answer.body["created_at"]), run);
        } else {
            let code = text(&answer.body["code"]);
            *refused.entry((answer.status, code)).or_insert(0) += 1;
        }
    }
    assert_eq!(accepted.len(), 5);
    let full = (429, "too_many_queued_runs".to_owned());
    assert_eq!(refused, BTreeMap::from([(full, 195)]));
    assert_eq!(runs(&world, &session).await.len(), 5);
    // In the order in which they were taken in.
    for (id, input) in accepted.into_values() {
        world.accepted_as(&session, id, &input);
    }
    gate.open();
    history::all_ended(&world, "succeeded").await;
}

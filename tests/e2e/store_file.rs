//! The store's file belongs to one process, and its schema goes a step back and on again.

use serde_json::json;

use super::support::api::{Api, list};
use super::support::gate::Gate;
use super::support::hango::Hango;
use super::support::history;
use super::support::home::Home;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::until::until_true;
use super::support::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_file_is_refused_and_does_not_disturb_the_first() {
    let world = World::start(&[], |_| Reply::text("all done")).await;

    for command in [&["serve"][..], &["quickstart", "--once"], &["migrate"]] {
        let refused = world.home.run(command);

        assert_eq!(refused.status, Some(1), "{command:?} {}", refused.err);
        assert!(
            refused.err.contains("another hango process"),
            "{}",
            refused.err
        );
        let file = world.home.file().display().to_string();
        assert!(refused.err.contains(&file), "{}", refused.err);
        assert!(!refused.out.contains("listening"), "{}", refused.out);
    }
    let looked = world.home.run(&["migrate", "--dry-run"]);
    assert_eq!(looked.status, Some(0), "{}", looked.err);
    world.start_run("one").await;
    history::all_ended(&world, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_goes_a_step_back_and_on_again() {
    let home = Home::of_server();
    let planned = home.run(&["migrate", "--dry-run"]);
    let applied = home.run(&["migrate"]);
    assert_eq!(applied.status, Some(0), "{}", applied.err);
    assert_eq!(planned.out, applied.out.replace("applied", "would apply"));
    assert!(applied.out.starts_with("applied 1 "), "{}", applied.out);

    let back = home.run(&["migrate", "--down", "1"]);

    assert_eq!(back.status, Some(0), "{}", back.err);
    assert_eq!(back.out.lines().count(), 1, "{}", back.out);
    assert!(back.out.starts_with("took back "), "{}", back.out);
    let pending = home.run(&["migrate", "--dry-run"]);
    assert_eq!(pending.out, back.out.replace("took back", "would apply"));
    let on = home.run(&["migrate"]);
    assert_eq!(
        on.out,
        back.out.replace("took back", "applied"),
        "{}",
        on.err
    );
    assert_eq!(home.run(&["migrate"]).out, "nothing to do\n");
    let mut hango = Hango::serve(&home).await;
    let api = Api::of(&hango.address().await);
    api.get("/readyz").await.expect(200);
}

#[test]
fn what_is_no_database_is_refused_and_left_as_it_is() {
    let home = Home::of_server();
    std::fs::write(home.file(), "what somebody else wrote").expect("the file can be written");

    let refused = home.run(&["serve"]);

    assert_eq!(refused.status, Some(1), "{}", refused.err);
    let file = home.file().display().to_string();
    assert!(refused.err.contains(&file), "{}", refused.err);
    let left = std::fs::read_to_string(home.file()).expect("the file can be read");
    assert_eq!(left, "what somebody else wrote");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_somebody_else_locks_for_long_costs_time_and_no_run() {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |ask: &Ask| match ask.turn {
        1 => Reply::calls([("unsafe", json!({"n": 1}))]).held_before_end(&held),
        _ => Reply::text("all done"),
    };
    let world = World::start(&[], model).await;
    let run = world.start_run("one").await;
    until_true("the answer is on its way", || {
        world.provider.asked().len() == 1
    })
    .await;

    let lock = world.freeze_commits().await;
    gate.open();
    let path = format!("/v1/sessions/{}/runs", run.session);
    let refused = world.api.post(&path, &json!({"input": "two"})).await;
    assert_eq!(refused.expect(503)["code"], "unavailable");
    assert_eq!(world.api.run(&run.id).await["state"], "running");
    world.api.get("/healthz").await.expect(200);
    lock.release().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [1, 1]);
    assert_eq!(world.tools.calls().len(), 1);
    let runs = list(&world.api.get(&path).await.expect(200));
    assert_eq!(runs.len(), 1, "what was refused was accepted: {runs:#?}");
}

//! Why a run is in its state, as a person asks the running server.

use serde_json::{Value, json};

use super::support::gate::Gate;
use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::until::{until, until_true};
use super::support::world::{Plan, World};

on_both_stores! {
    a_run_behind_a_running_one_says_so_and_the_running_one_who_holds_it
    a_run_whose_process_was_killed_tells_of_both_attempts
    a_run_that_failed_says_why_in_words
}

async fn explained(world: &World, run: &str) -> Value {
    let answer = world.api.get(&format!("/v1/runs/{run}/explain")).await;
    answer.expect(200)
}

fn summary(explained: &Value) -> &str {
    explained["summary"].as_str().expect("a sentence")
}

/// The first try of what is said to `one` is held.
fn held(gate: &Gate) -> impl Fn(&Ask) -> Reply + Send + Sync + 'static {
    let gate = gate.clone();
    move |ask| match (ask.run.as_str(), ask.time) {
        ("one", 1) => Reply::text("this is held").held_before_end(&gate),
        _ => Reply::text("done"),
    }
}

async fn a_run_behind_a_running_one_says_so_and_the_running_one_who_holds_it(kind: Kind) {
    let gate = Gate::closed();
    let plan = Plan::on(kind, &[("HANGO_MAX_RUNNING_PER_TENANT", "7")]).await;
    let world = plan.start(held(&gate)).await;
    let first = world.start_run("one").await;
    until_true("the model is asked", || {
        world.provider.asked_for("one").len() == 1
    })
    .await;
    let second = world.start_run_in(&first.session, "two").await;

    let running = explained(&world, &first.id).await;
    let queued = explained(&world, &second.id).await;

    assert_eq!(running["state"], "running");
    assert_eq!(running["queue"], Value::Null);
    let (lease, attempt) = (&running["lease"], &running["attempts"][0]);
    assert_eq!(
        (&lease["attempt"], &attempt["attempt"]),
        (&json!(1), &json!(1))
    );
    assert!(lease["owner_id"].is_string() && lease["owner_id"] == attempt["owner_id"]);
    assert_eq!(attempt["ended_at"], Value::Null);
    let words = format!("asking the model in turn 1, held by process {}", {
        lease["owner_id"].as_str().expect("an id")
    });
    assert!(summary(&running).contains(&words), "{running:#}");
    let place = json!({"position": 2, "blocked_by": first.id, "tenant_running": 1,
                       "tenant_cap": 7});
    assert_eq!(queued["queue"], place);
    assert_eq!(
        (&queued["state"], &queued["lease"]),
        (&json!("queued"), &Value::Null)
    );
    let words = format!("run {} of its session comes first.", first.id);
    assert!(summary(&queued).ends_with(&words), "{queued:#}");
    let renewed = until("the lease is renewed", async || {
        let now = explained(&world, &first.id).await;
        let at = now["lease"]["renewed_at"].as_str().map(str::to_owned);
        at.map(|at| (at, now))
    });
    let (at, now) = renewed.await;
    assert!(Some(&*at) > attempt["started_at"].as_str(), "{now:#}");
    assert!(Some(&*at) < now["lease"]["expires_at"].as_str(), "{now:#}");

    gate.open();
    world.api.ended(&second.id).await;
    for run in [&first, &second] {
        let ended = explained(&world, &run.id).await;
        assert_eq!(ended["state"], "succeeded");
        assert_eq!(ended["attempts"][0]["cause"], "succeeded");
        let words = " with 1 model call in 1 attempt.";
        assert!(summary(&ended).ends_with(words), "{ended:#}");
    }
    history::check(&world).await;
}

async fn a_run_whose_process_was_killed_tells_of_both_attempts(kind: Kind) {
    let mut world = Plan::on(kind, &[]).await.start(held(&Gate::closed())).await;
    let run = world.start_run("one").await;
    until_true("the model is asked", || {
        world.provider.asked_for("one").len() == 1
    })
    .await;
    let before = explained(&world, &run.id).await;

    world.kill();
    world.restart().await;
    world.api.ended(&run.id).await;

    let ended = explained(&world, &run.id).await;
    let attempts = ended["attempts"].as_array().expect("a list");
    let causes: Vec<_> = attempts.iter().map(|it| &it["cause"]).collect();
    assert_eq!(causes, ["lease_expired", "succeeded"], "{ended:#}");
    assert_eq!(attempts[0]["owner_id"], before["lease"]["owner_id"]);
    assert_ne!(attempts[1]["owner_id"], attempts[0]["owner_id"]);
    let moments = ["started_at", "ended_at"];
    let moments = attempts.iter().flat_map(|it| moments.map(|name| &it[name]));
    let moments: Vec<_> = moments.map(|at| at.as_str().expect("a moment")).collect();
    assert!(moments.is_sorted(), "{ended:#}");
    assert!(summary(&ended).ends_with(" in 2 attempts."), "{ended:#}");
    history::check(&world).await;
}

async fn a_run_that_failed_says_why_in_words(kind: Kind) {
    let plan = Plan::on(kind, &[("HANGO_MAX_ITERATIONS", "1")]).await;
    let model = |_: &Ask| Reply::calls([("safe", json!({"n": 1}))]);
    let world = plan.start(model).await;
    let run = world.start_run("one").await;

    world.api.ended(&run.id).await;

    let failed = explained(&world, &run.id).await;
    assert_eq!(failed["state"], "failed");
    assert_eq!(failed["error"]["code"], "max_iterations");
    assert_eq!(failed["attempts"][0]["cause"], "max_iterations");
    let words = " as max_iterations: it made as many model calls as it may, and was not done.";
    assert!(summary(&failed).ends_with(words), "{failed:#}");
    history::check(&world).await;
}

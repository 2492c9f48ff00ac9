//! Many runs at once over few connections.

use std::time::{Duration, Instant};

use super::support::history;
use super::support::provider::{Ask, Asked};
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::world::Plan;

const SESSIONS: usize = 50;
const RUNS_EACH: usize = 4;

on_both_stores! {
    two_hundred_runs_in_fifty_sessions_succeed_in_order_over_five_connections
}

async fn two_hundred_runs_in_fifty_sessions_succeed_in_order_over_five_connections(kind: Kind) {
    let model = |_: &Ask| Reply::text("all done").after(Duration::from_secs(1));
    let settings = [("HANGO_DATABASE_MAX_CONNECTIONS", "5")];
    let world = Plan::on(kind, &settings).await.start(model).await;
    let begun = Instant::now();
    let sessions = (0..SESSIONS).map(|session| {
        let world = &world;
        async move {
            let id = world.api.open_session().await;
            for n in 0..RUNS_EACH {
                world.start_run_in(&id, &input(session, n)).await;
            }
        }
    });
    futures::future::join_all(sessions).await;
    let accepted = begun.elapsed();

    for run in world.accepted() {
        let ended = world.api.ended(&run.id).await;
        assert_eq!(ended["state"], "succeeded", "{ended:#}");
        let connections = world.home.store().connections().await;
        assert!(
            connections.is_none_or(|count| count <= 5),
            "{connections:?}"
        );
    }
    eprintln!(
        "200 runs of a second each: accepted within {accepted:?}, ended within {:?}",
        begun.elapsed()
    );

    history::check(&world).await;
    for session in 0..SESSIONS {
        let mut before: Option<Asked> = None;
        for n in 0..RUNS_EACH {
            let mut asked = world.provider.asked_for(&input(session, n));
            assert_eq!(asked.len(), 1);
            let asked = asked.remove(0);
            let ended = before.as_ref().and_then(Asked::ended_at);
            assert!(before.is_none() || ended.is_some_and(|ended| ended <= asked.at));
            before = Some(asked);
        }
    }
}

fn input(session: usize, n: usize) -> String {
    format!("session {session}, run {n}")
}

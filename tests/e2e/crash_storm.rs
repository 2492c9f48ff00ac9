//! `kill -9` again and again, wherever it hits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::support::api::{has_ended, text};
use super::support::history;
use super::support::messages;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::tools::Response;
use super::support::world::World;

const KILLS: usize = 10;
const TURNS: usize = 4;

/// The points of time of a storm: all that is random, and the same again for the same seed.
struct Storm(u64);

impl Storm {
    /// Of the seed that is asked for, else of a new one, which is printed.
    #[expect(clippy::disallowed_methods, reason = "a failure is replayed by hand")]
    fn new() -> Self {
        let asked = std::env::var("HANGO_TEST_SEED").ok();
        let seed = asked.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
            let mut bytes = [0; 4];
            getrandom::fill(&mut bytes).expect("the system has randomness");
            u64::from(u32::from_ne_bytes(bytes))
        });
        eprintln!("HANGO_TEST_SEED={seed}");
        Self(seed)
    }

    /// How long until the next kill.
    fn next(&mut self) -> Duration {
        // Knuth's MMIX generator; its upper bits are good.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(20 + (self.0 >> 33) % 400)
    }
}

/// Four turns, two tools in each but the last, a word every few milliseconds.
fn four_turns(ask: &Ask) -> Reply {
    let reply = if ask.turn < TURNS {
        let n = ask.turn * 10;
        Reply::calls([("keyed", json!({"n": n})), ("unsafe", json!({"n": n + 1}))])
    } else {
        Reply::text("after all of this the answer is still here")
    };
    reply.paced(Duration::from_millis(15))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_killed_ten_times_ends_as_if_nothing_had_happened() {
    let mut storm = Storm::new();
    let settings = [
        // Turns may be hit more often than a server would bear.
        ("HANGO_MAX_STALLED_ATTEMPTS", "0"),
        ("HANGO_RUN_POLL_INTERVAL", "50ms"),
    ];
    let slow = |_: &_| Response::text("done").after(Duration::from_millis(40));
    let mut world = World::with_tools(&settings, four_turns, slow).await;
    let run = world.start_run("one").await;

    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    let mut committed = Vec::new();
    for _ in 0..KILLS {
        tokio::time::sleep(storm.next()).await;
        if has_ended(&world.api.run(&run.id).await) {
            break;
        }
        // What is on record now, and how often its service has been called so far.
        committed = messages::calls(&world.api.messages(&run.session).await);
        for call in world.api.tool_calls(&run.id).await {
            if call["state"] == "finished" {
                let key = text(&call["idempotency_key"]);
                let times = world.tools.times().get(&key).copied().unwrap_or_default();
                recorded.entry(key).or_insert(times);
            }
        }
        world.kill();
        world.restart().await;
    }

    history::all_ended(&world, "succeeded").await;
    let times = world.tools.times();
    for (key, then) in recorded {
        assert_eq!(times[&key], then, "a recorded call was repeated");
    }
    let calls = messages::calls(&world.api.messages(&run.session).await);
    assert!(calls.starts_with(&committed), "{calls:?} {committed:?}");
    committed_answers_are_the_last_ones(&world);
}

/// No turn is asked for once its answer is on record: the answer that is kept is the last one that was
/// asked for, and nobody asks for a turn after a later one.
fn committed_answers_are_the_last_ones(world: &World) {
    let asked = world.provider.asked_for("one");
    assert!(asked.is_sorted_by_key(|asked| asked.ask.turn));
    let last = asked.last().expect("something was asked");
    for message in &last.ask.messages {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = text(&call["id"]);
            let at = asked.iter().position(|asked| asked.ids.contains(&id));
            let at = at.expect("the provider made every call");
            assert!(asked[at].ask.turn < asked[at + 1].ask.turn, "{id}");
        }
    }
}

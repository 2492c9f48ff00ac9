//! The layers at work: what they keep of a run, through turns, attempts and the store.

use std::collections::BTreeMap;
use std::time::Duration;

use hango_conformance::{OnRecord, Place, owner};
use hango_domain::RunId;
use hango_domain::event::EventKind;
use hango_domain::memory::RunMemory;
use hango_domain::note::Note;
use hango_domain::run::{Change, RunErrorCode, RunStatus, StoredMemory, Todo, TodoStatus};
use hango_ports::telemetry::Observation;
use hango_ports::tool::Idempotency;
use serde_json::{Value, json};

use crate::support::{Does, Say, World, asks, failed_with, says, settings, texts};

/// A layer's values, by their names.
type Named<T> = BTreeMap<String, T>;

const WRITTEN: &str = "The todo list was replaced. It stands in your system prompt.";

fn list(content: &str) -> Value {
    json!({"todos": [{"content": content, "status": "in_progress"}]})
}

fn todos(content: &str) -> Vec<Todo> {
    vec![Todo {
        content: content.to_owned(),
        status: TodoStatus::InProgress,
    }]
}

fn nudge(id: &str, made: u32) -> String {
    format!(
        "{id}! this exact call was already made {made} times; use the previous result or change approach"
    )
}

/// What the run remembers.
fn memory(record: &OnRecord) -> RunMemory {
    RunMemory::from_stored(&record.run.memory).expect("it can be read")
}

/// What the layers reported.
fn notes(world: &World) -> Vec<Note> {
    let observed = world.watching.observed().into_iter();
    observed
        .filter_map(|it| match it {
            Observation::Noted { note, .. } => Some(note),
            _ => None,
        })
        .collect()
}

/// The system prompts of the model calls.
fn prompts(world: &World) -> Vec<Vec<String>> {
    let calls = world.provider.calls().into_iter();
    calls
        .map(|call| {
            call.asked
                .system
                .into_iter()
                .map(|block| block.text)
                .collect()
        })
        .collect()
}

/// The tools that the model was offered last.
fn offered(world: &World) -> Vec<String> {
    let call = world.provider.calls().pop().expect("it was asked");
    call.asked.tools.into_iter().map(|tool| tool.name).collect()
}

/// A queued run that completed a turn and left `private` behind.
async fn left_with(world: &World, place: &Place, private: Value) -> RunId {
    let fixture = &world.fixture;
    let run = fixture.run(place).await.id;
    let lease = fixture.held(run, owner(9)).await;
    let answer = fixture.answer(lease, 1, 1, 1);
    fixture.written(Change::Answer(answer)).await;
    let calls = fixture.on_record(place, run).await.calls;
    let mut boundary = fixture.boundary(lease, 1, &calls);
    boundary.memory = Some(StoredMemory {
        json: json!({ "private": private }),
        ..StoredMemory::default()
    });
    fixture.written(Change::CompleteTurn(boundary)).await;
    let back = fixture.give_back(lease, Duration::ZERO);
    fixture.written(Change::GiveBack(back)).await;
    run
}

#[tokio::test(start_paused = true)]
async fn the_plan_is_the_runs_and_in_the_prompt_and_in_no_message() {
    let world = World::new().await;
    let place = world.layered().await;
    let script = &world.provider;
    script.then(asks(&[("c1", "write_todos", list("look"))]));
    script.then(asks(&[
        ("c2", "write_todos", list("think")),
        ("c3", "write_todos", list("write")),
    ]));
    script.then(says("Done."));

    let process = world.start(settings()).await;
    let run = world.run_in(&place).await;
    let record = world.ended_in(&place, run.id).await;
    process.drain().await;

    assert_eq!(memory(&record).todos, todos("write"));
    let updated = record.events.iter().filter_map(|event| match &event.kind {
        EventKind::TodosUpdated { todos } => Some((event.turn, todos.clone())),
        _ => None,
    });
    let expected = [(1, todos("look")), (2, todos("write"))];
    assert_eq!(updated.collect::<Vec<_>>(), expected);
    let block =
        |content| format!("Your todo list, as write_todos left it:\n- [in_progress] {content}");
    let own = || "Be brief.".to_owned();
    assert_eq!(
        prompts(&world),
        [
            vec![own()],
            vec![own(), block("look")],
            vec![own(), block("write")]
        ]
    );
    assert_eq!(
        texts(&record.messages),
        [
            "What time is it?",
            "write_todos? c1",
            &format!("c1: {WRITTEN}"),
            "write_todos? c2",
            "write_todos? c3",
            &format!("c2: {WRITTEN}"),
            &format!("c3: {WRITTEN}"),
            "Done.",
        ]
    );
    let one = Note::TodosUpdated {
        pending: 0,
        in_progress: 1,
        completed: 0,
    };
    assert_eq!(notes(&world), [one.clone(), one.clone(), one]);
}

#[tokio::test(start_paused = true)]
async fn write_todos_is_there_unless_the_allowlist_leaves_it_out() {
    let mut world = World::new().await;
    world.tool("clock", Idempotency::Safe, Does::Returns);
    let place = world.layered().await;
    world.provider.then(says("Done."));
    let process = world.start(settings()).await;
    let run = world.run_in(&place).await;
    world.ended_in(&place, run.id).await;
    assert_eq!(offered(&world), ["clock", "write_todos"]);

    let place = world
        .place(|agent| {
            agent.middleware.clear();
            agent.tools = vec!["clock".to_owned()];
        })
        .await;
    let script = &world.provider;
    script.then(asks(&[
        ("c1", "write_todos", list("look")),
        ("c2", "clock", json!({})),
    ]));
    script.then(says("Done."));
    let run = world.run_in(&place).await;
    let record = world.ended_in(&place, run.id).await;
    process.drain().await;

    assert_eq!(offered(&world), ["clock"]);
    assert_eq!(memory(&record).todos, []);
    let refused = r#"c1! the agent may not call "write_todos""#;
    let answered = [refused, "c2: clock did c2"];
    assert_eq!(texts(&record.messages)[3..5], answered);
}

#[tokio::test(start_paused = true)]
async fn the_third_equal_call_is_not_executed_whichever_turn_and_attempt_makes_it() {
    let mut world = World::new().await;
    let tool = world.tool("look", Idempotency::Safe, Does::Returns);
    let place = world.layered().await;
    let script = &world.provider;
    script.then(asks(&[("c1", "look", json!({"at": 1, "how": "far"}))]));
    script.then(asks(&[("c2", "look", json!({"how": "far", "at": 1.0}))]));
    script.then(vec![Say::Hang]);
    let process = world.start(settings()).await;
    let run = world.run_in(&place).await;
    world
        .until("it waits", || world.provider.count() == 3)
        .await;
    process.engine.drain(Duration::ZERO).await;

    script.then(asks(&[
        ("c3", "look", json!({"at": 1, "how": "far"})),
        ("c4", "look", json!({"at": 2, "how": "far"})),
    ]));
    script.then(asks(&[("c5", "look", json!({"at": 1, "how": "far"}))]));
    script.then(says("Done."));
    let process = world.start_as(owner(2), settings()).await;
    let record = world.ended_in(&place, run.id).await;
    process.drain().await;

    assert_eq!((record.run.attempt, tool.count()), (2, 3));
    let said = texts(&record.messages);
    assert_eq!(said[7..9], [nudge("c3", 2), "c4: look did c4".to_owned()]);
    assert_eq!(said[10], nudge("c5", 3));
    let blocked = Note::RepeatCallBlocked {
        tool: "look".to_owned(),
    };
    assert_eq!(notes(&world), [blocked.clone(), blocked]);
}

#[tokio::test(start_paused = true)]
async fn an_agents_own_threshold_stands_before_the_servers() {
    let mut world = World::new().await;
    let tool = world.tool("look", Idempotency::Safe, Does::Returns);
    let place = world
        .place(|agent| {
            let own = json!({"threshold": 2});
            agent.middleware.insert("repeat_call".to_owned(), own);
        })
        .await;
    let script = &world.provider;
    script.then(asks(&[
        ("c1", "look", json!({})),
        ("c2", "look", json!({})),
    ]));
    script.then(says("Done."));

    let process = world.start(settings()).await;
    let run = world.run_in(&place).await;
    let record = world.ended_in(&place, run.id).await;
    process.drain().await;

    assert_eq!(tool.count(), 1);
    assert_eq!(texts(&record.messages)[4], nudge("c2", 1));
}

#[tokio::test(start_paused = true)]
async fn what_calls_did_to_the_memory_before_a_crash_is_done_again_when_their_batch_goes_on() {
    let mut world = World::new().await;
    let takes = Does::Takes(Duration::from_secs(5));
    let tool = world.tool("look", Idempotency::Safe, takes);
    let place = world.layered().await;
    let script = &world.provider;
    script.then(asks(&[
        ("c1", "look", json!({})),
        ("c2", "look", json!({})),
        ("c3", "look", json!({})),
        ("c4", "write_todos", list("look")),
    ]));
    let process = world.start(settings()).await;
    let run = world.run_in(&place).await;
    let two_settled = |it: &OnRecord| it.calls.iter().filter(|call| call.is_settled()).count() == 2;
    world.reaches_in(&place, run.id, two_settled).await;
    process.engine.drain(Duration::ZERO).await;
    let reported = notes(&world);
    assert_eq!(
        memory(&world.fixture.on_record(&place, run.id).await).todos,
        []
    );

    script.then(asks(&[("c5", "look", json!({}))]));
    script.then(says("Done."));
    let process = world.start_as(owner(2), settings()).await;
    let record = world.ended_in(&place, run.id).await;
    process.drain().await;

    assert_eq!(memory(&record).todos, todos("look"));
    let said = texts(&record.messages);
    assert_eq!(
        said[5..],
        [
            "c1: look did c1",
            "c2: look did c2",
            &nudge("c3", 2),
            &format!("c4: {WRITTEN}"),
            "look? c5",
            &nudge("c5", 3),
            "Done.",
        ]
    );
    // Both attempts executed the two that were open; what was settled was reported once.
    assert_eq!(tool.count(), 4);
    let blocked = Note::RepeatCallBlocked {
        tool: "look".to_owned(),
    };
    assert_eq!(notes(&world)[reported.len()..], [blocked]);
}

#[tokio::test(start_paused = true)]
async fn what_three_layers_keep_reads_back_in_a_new_attempt() {
    let mut world = World::new().await;
    world.tool("look", Idempotency::Safe, Does::Returns);
    let place = world.layered().await;
    let private = json!({
        "repeat_call": {"made": {"another call": 7}},
        "skills": {"loaded": ["a", "b"]},
        "filesystem": [["a.txt", 3]],
    });
    let run = left_with(&world, &place, private).await;
    world.provider.then(asks(&[("c1", "look", json!({}))]));
    world.provider.then(says("Done."));

    let process = world.start(settings()).await;
    let record = world.ended_in(&place, run).await;
    process.drain().await;

    let memory = memory(&record);
    let counts: Option<Named<Named<u32>>> = memory.load("repeat_call").expect("a struct");
    let counts = counts
        .unwrap_or_default()
        .remove("made")
        .unwrap_or_default();
    assert_eq!(counts["another call"], 7);
    assert_eq!(counts.into_values().sum::<u32>(), 8);
    let skills: Option<Named<Vec<String>>> = memory.load("skills").expect("a struct");
    assert_eq!(skills.unwrap_or_default()["loaded"], ["a", "b"]);
    let files: Option<Vec<(String, u32)>> = memory.load("filesystem").expect("a struct");
    assert_eq!(files, Some(vec![("a.txt".to_owned(), 3)]));
    assert_eq!(notes(&world), []);
}

#[tokio::test(start_paused = true)]
async fn counts_that_are_missing_in_a_resumed_run_begin_anew_and_somebody_is_told_once() {
    let mut world = World::new().await;
    let tool = world.tool("look", Idempotency::Safe, Does::Returns);
    let place = world.layered().await;
    let run = left_with(&world, &place, json!({"todo": 1})).await;
    let script = &world.provider;
    script.then(asks(&[("c1", "look", json!({}))]));
    script.then(vec![Say::Hang]);
    let process = world.start(settings()).await;
    world
        .until("it waits", || world.provider.count() == 2)
        .await;
    process.engine.drain(Duration::ZERO).await;
    script.then(says("Done."));

    let process = world.start_as(owner(2), settings()).await;
    let record = world.ended_in(&place, run).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(tool.count(), 1);
    let missing = Note::StateMissing {
        layer: "repeat_call",
    };
    assert_eq!(notes(&world), [missing]);
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_that_left_no_turn_behind_misses_nothing() {
    let world = World::new().await;
    let place = world.layered().await;
    world.provider.then(vec![Say::Hang]);
    let process = world.start(settings()).await;
    let run = world.run_in(&place).await;
    world
        .until("it waits", || world.provider.count() == 1)
        .await;
    process.engine.drain(Duration::ZERO).await;
    world.provider.then(says("Done."));

    let process = world.start_as(owner(2), settings()).await;
    let record = world.ended_in(&place, run.id).await;
    process.drain().await;

    assert_eq!(record.run.attempt, 2);
    assert_eq!(notes(&world), []);
}

#[tokio::test(start_paused = true)]
async fn counts_that_cannot_be_read_end_the_run_as_internal() {
    let world = World::new().await;
    let place = world.layered().await;
    let run = left_with(&world, &place, json!({"repeat_call": {"made": "often"}})).await;

    let process = world.start(settings()).await;
    let record = world.ended_in(&place, run).await;
    process.drain().await;

    assert_eq!(failed_with(&record.run.state), Some(RunErrorCode::Internal));
    assert_eq!(world.provider.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_optional_layers_nothing_is_added_counted_or_kept() {
    let mut world = World::new().await;
    let tool = world.tool("look", Idempotency::Safe, Does::Returns);
    let script = &world.provider;
    for id in ["c1", "c2", "c3", "c4"] {
        script.then(asks(&[(id, "look", json!({}))]));
    }
    script.then(asks(&[("c5", "write_todos", list("look"))]));
    script.then(says("Done."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(tool.count(), 4);
    assert_eq!(offered(&world), ["look"]);
    assert!(
        prompts(&world)
            .iter()
            .all(|prompt| prompt == &["Be brief."])
    );
    let unknown = r#"c5! there is no tool "write_todos""#;
    assert!(texts(&record.messages).contains(&unknown.to_owned()));
    assert_eq!(record.run.memory, StoredMemory::default());
    assert_eq!(notes(&world), []);
}

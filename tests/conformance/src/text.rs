//! Any text of a model or a tool can be stored.

use hango_domain::conversation::{Block, ProviderData};
use hango_domain::event::EventKind;
use hango_domain::run::{Change, Outcome, RunError, RunErrorCode, StoredMemory, Todo, TodoStatus};
use hango_domain::tool::ToolResult;
use serde_json::{Map, json};

use crate::Fixture;

/// Text of every plane, with all that a store might trip over but U+0000.
const HARD: &str = "\u{1}\u{7f}'\"\\%_ \u{2028}\u{fffd}\u{1f980} e\u{301} \u{10ffff}\r\n\t";

/// What needs no replacement comes back as it was.
pub async fn text_of_any_kind_comes_back_as_it_was(fixture: Fixture) {
    let place = fixture.place().await;
    let mut new = fixture.new_run(&place.owner, place.session.id);
    new.input = vec![Block::text(HARD)];
    new.metadata = Map::from_iter([(HARD.to_owned(), json!([HARD, 1.5, -7, null, u64::MAX]))]);

    let run = fixture.accept(new.clone()).await;

    let stored = fixture.on_record(&place, run.id).await.run;
    assert_eq!((stored.input, stored.metadata), (new.input, new.metadata));
}

/// U+0000 of a model becomes U+FFFD, in each kind of block and in the journal alike.
pub async fn the_null_character_of_a_model_is_replaced(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let mut answer = fixture.answer(lease, 1, 1, 1);
    let call = |id: &str, text: &str| Block::ToolUse {
        id: id.to_owned(),
        name: text.to_owned(),
        input: Map::from_iter([(text.to_owned(), json!({"deep": [text]}))]),
        provider_data: Some(ProviderData {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            data: json!(text),
        }),
    };
    let content = |id: &str, text: &str| {
        vec![
            Block::Thinking {
                thinking: text.to_owned(),
                signature: "sig".to_owned(),
                provider_data: None,
            },
            Block::text(text),
            call(id, text),
        ]
    };
    answer.message.content = content("c\0", "a\0b");
    "c\0".clone_into(&mut answer.calls[0].tool_use_id);
    "a\0b".clone_into(&mut answer.calls[0].name);
    answer.calls[0].input = Map::from_iter([("a\0b".to_owned(), json!({"deep": ["a\0b"]}))]);
    answer.calls[0].invalid_input = Some("{\0".to_owned());

    let written = fixture.written(Change::Answer(answer)).await;

    let record = fixture.on_record(&place, lease.run).await;
    let clean = "a\u{fffd}b";
    assert_eq!(record.messages[1].content, content("c\u{fffd}", clean));
    let entry = &record.calls[0];
    assert_eq!(entry.tool_use_id, "c\u{fffd}");
    assert_eq!(entry.name, clean);
    let input = Map::from_iter([(clean.to_owned(), json!({"deep": [clean]}))]);
    assert_eq!(entry.input, input);
    assert_eq!(entry.invalid_input.as_deref(), Some("{\u{fffd}"));
    assert_eq!(record.events[record.events.len() - 2..], written.events);
}

/// U+0000 of a tool becomes U+FFFD in its result, in the message, in the memory and in the plan.
pub async fn the_null_character_of_a_tool_is_replaced(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 1).await;
    let mut boundary = fixture.boundary(lease, 1, &calls);
    let result = |text: &str| ToolResult {
        for_llm: text.to_owned(),
        for_user: Some(text.to_owned()),
        is_error: false,
        failure: None,
    };
    boundary.results[0].result = result("a\0b");
    boundary.message.content = vec![Block::ToolResult {
        tool_use_id: calls[0].tool_use_id.clone(),
        content: "a\0b".to_owned(),
        for_user: Some("a\0b".to_owned()),
        is_error: false,
    }];
    boundary.memory = Some(StoredMemory {
        version: 1,
        json: json!({"private": {"layer": {"a\0b": "a\0b"}}}),
    });
    boundary.todos = Some(vec![Todo {
        content: "a\0b".to_owned(),
        status: TodoStatus::Pending,
    }]);

    fixture.written(Change::CompleteTurn(boundary)).await;

    let record = fixture.on_record(&place, lease.run).await;
    let clean = "a\u{fffd}b";
    assert_eq!(record.calls[0].result, Some(result(clean)));
    let expected = Block::ToolResult {
        tool_use_id: calls[0].tool_use_id.clone(),
        content: clean.to_owned(),
        for_user: Some(clean.to_owned()),
        is_error: false,
    };
    assert_eq!(record.messages[2].content, [expected]);
    let memory = json!({"private": {"layer": {clean: clean}}});
    assert_eq!(record.run.memory.json, memory);
    let events = format!("{:?}", record.events);
    assert!(!events.contains("\\0"), "{events}");
}

/// Whatever a model called its tools, events and journal have the same clean names.
pub async fn an_event_names_the_call_as_the_journal_has_it(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let mut answer = fixture.answer(lease, 1, 1, 1);
    "get\0time".clone_into(&mut answer.calls[0].name);
    let written = fixture.written(Change::Answer(answer)).await;
    let calls = fixture.on_record(&place, lease.run).await.calls;
    let started = EventKind::ToolStarted {
        position: 1,
        tool_use_id: calls[0].tool_use_id.clone(),
        name: calls[0].name.clone(),
    };
    assert_eq!(written.events[1].kind, started);
    let mut record = fixture.record(lease, &calls[0], None);
    "get\0time".clone_into(&mut record.result.name);

    let written = fixture.written(Change::Record(record)).await;

    assert_eq!(calls[0].name, "get\u{fffd}time");
    let completed = EventKind::ToolCompleted {
        position: 1,
        tool_use_id: calls[0].tool_use_id.clone(),
        name: calls[0].name.clone(),
        is_error: false,
        duration_ms: Some(7),
    };
    assert_eq!(written.events[0].kind, completed);
}

/// Why a run failed may be a model's or a provider's text too.
pub async fn the_null_character_of_an_error_is_replaced(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let mut end = fixture.finish(lease, 1);
    let error = |message: &str| RunError::new(RunErrorCode::ProviderRejected, message);
    end.outcome = Outcome::Failed(error("no\0"));

    fixture.written(Change::Finish(end)).await;

    let run = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(run.state.error(), Some(&error("no\u{fffd}")));
}

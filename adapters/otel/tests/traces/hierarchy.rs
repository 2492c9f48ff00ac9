//! A run that goes well: every span of it, and all that is on each.

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;

use hango_domain::SpanId;

use crate::support::{CANARY, World, asks, attribute, keys, of, says};

/// What every span of a run says.
const OF_RUN: [&str; 14] = [
    "hango.agent.id",
    "hango.lane",
    "hango.run.id",
    "hango.session.id",
    "hango.tenant.id",
    "langfuse.session.id",
    "langfuse.trace.metadata.agent_id",
    "langfuse.trace.metadata.run_id",
    "langfuse.trace.metadata.tenant_id",
    "langfuse.trace.name",
    "langfuse.trace.tags",
    "langfuse.user.id",
    "session.id",
    "user.id",
];

/// The keys of a span beside those that every span has.
fn own_keys(span: &SpanData) -> Vec<&str> {
    let keys = keys(span);
    for key in OF_RUN {
        assert!(keys.contains(&key), "{}: {key}", span.name);
    }
    keys.into_iter().filter(|it| !OF_RUN.contains(it)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_is_one_trace_with_its_turns_calls_and_hooks_under_one_root() {
    let world = World::new().await;
    world
        .provider
        .then(asks("call_1", "well"))
        .then(says("done"));
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    let root = trace.one("invoke_agent Support bot");
    let id = |span: &SpanData| span.span_context.span_id();
    assert_eq!(id(root).to_bytes(), run.trace.span_id.0);
    assert_eq!(root.parent_span_id.to_bytes(), [0; 8]);
    let turns = trace.all("chain turn");
    let chats = trace.all("chat model-x");
    let tool = trace.one("execute_tool well");
    let hooks = trace.one("agent.before_run");
    assert_eq!((turns.len(), chats.len()), (2, 2));
    for (n, turn) in (1..).zip(&turns) {
        assert_eq!(turn.parent_span_id, id(root));
        let derived = SpanId::of_turn(run.id, 1, n);
        assert_eq!(id(turn).to_bytes(), derived.0);
        assert_eq!(chats[n as usize - 1].parent_span_id, id(turn));
    }
    assert_eq!(tool.parent_span_id, id(turns[0]));
    assert_eq!(hooks.parent_span_id, id(root));
    for layer in ["repair_tool_calls", "todo", "repeat_call", "tool_allowlist"] {
        let hook = trace.one(&format!("before_run {layer}"));
        assert_eq!(hook.parent_span_id, id(hooks));
        assert_eq!(own_keys(hook), ["hango.middleware.name"]);
    }
    assert_eq!(trace.0.len(), 1 + 2 + 2 + 1 + 1 + 4);
    for span in &trace.0 {
        assert_eq!(
            span.span_context.trace_id().to_bytes(),
            run.trace.trace_id.0
        );
        let (client, internal) = (SpanKind::Client, SpanKind::Internal);
        let is_chat = span.name.starts_with("chat ");
        assert_eq!(span.span_kind, if is_chat { client } else { internal });
        assert_eq!(span.status, Status::Unset, "{}", span.name);
        assert!(root.start_time <= span.start_time && span.end_time <= root.end_time);
    }
    assert!(chats[0].end_time <= tool.start_time && turns[0].end_time <= turns[1].start_time);
    assert!(!format!("{:?}", trace.0).contains(CANARY));
}

#[tokio::test(start_paused = true)]
async fn each_span_has_its_attributes_and_no_other() {
    let world = World::new().await;
    world
        .provider
        .then(asks("call_1", "well"))
        .then(says("done"));
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    let root = trace.one("invoke_agent Support bot");
    assert_eq!(
        own_keys(root),
        [
            "gen_ai.agent.id",
            "gen_ai.agent.name",
            "gen_ai.conversation.id",
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "hango.run.attempts",
            "hango.run.iterations",
            "hango.run.queue_wait_ms",
            "hango.run.state",
            "hango.run.stop_reason",
            "hango.run.usage.input_tokens",
            "hango.run.usage.output_tokens",
            "langfuse.observation.type",
            "openinference.span.kind",
        ]
    );
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(attribute(root, "hango.run.state"), text("succeeded"));
    assert_eq!(attribute(root, "hango.run.stop_reason"), text("end_turn"));
    assert_eq!(attribute(root, "hango.run.iterations"), text("2"));
    assert_eq!(attribute(root, "langfuse.trace.name"), text("Support bot"));
    assert_eq!(attribute(root, "openinference.span.kind"), text("AGENT"));
    let ended = world.fixture.on_record(&world.place, run.id).await.run;
    let input = ended.usage.input_tokens.to_string();
    assert_eq!(attribute(root, "hango.run.usage.input_tokens"), Some(input));

    let turn = trace.all("chain turn")[1];
    let turn_keys = [
        "hango.attempt",
        "hango.turn",
        "langfuse.observation.type",
        "openinference.span.kind",
    ];
    assert_eq!(own_keys(turn), turn_keys);
    assert_eq!(attribute(turn, "hango.turn"), text("2"));

    let chat = trace.all("chat model-x")[0];
    assert_eq!(
        own_keys(chat),
        [
            "gen_ai.conversation.id",
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.max_tokens",
            "gen_ai.request.model",
            "gen_ai.request.stream",
            "gen_ai.request.temperature",
            "gen_ai.response.finish_reasons",
            "gen_ai.response.id",
            "gen_ai.response.model",
            "gen_ai.response.time_to_first_chunk",
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "langfuse.observation.completion_start_time",
            "langfuse.observation.type",
            "langfuse.observation.usage_details",
            "openinference.span.kind",
            "server.address",
            "server.port",
        ]
    );
    assert_eq!(
        attribute(chat, "gen_ai.response.finish_reasons"),
        text(r#"["raw"]"#)
    );
    let details = attribute(chat, "langfuse.observation.usage_details");
    let details: serde_json::Value = details.unwrap_or_default().parse().expect("JSON");
    let counts = details.as_object().expect("an object").values();
    let sum: u64 = counts.filter_map(serde_json::Value::as_u64).sum();
    let usage = hango_conformance::USAGE;
    assert_eq!(sum, usage.input_tokens + usage.output_tokens);

    let tool = trace.one("execute_tool well");
    assert_eq!(
        own_keys(tool),
        [
            "gen_ai.operation.name",
            "gen_ai.tool.call.id",
            "gen_ai.tool.description",
            "gen_ai.tool.name",
            "gen_ai.tool.type",
            "hango.tool.executed",
            "langfuse.observation.type",
            "openinference.span.kind",
        ]
    );
    assert_eq!(attribute(tool, "hango.tool.executed"), text("true"));
}

#[tokio::test(start_paused = true)]
async fn the_root_tells_of_the_claim_and_the_layers_and_links_to_who_created_the_run() {
    let world = World::new().await;
    world.provider.then(says("done"));
    let mut new = world
        .fixture
        .new_run(&world.place.owner, world.place.session.id);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    new.trace.created_by_traceparent = Some(parent.to_owned());
    let run = world.fixture.accept(new).await;

    let trace = world.trace_of(run.id).await;

    let root = trace.one("invoke_agent Support bot");
    let events: Vec<_> = root.events.iter().map(|event| &*event.name).collect();
    assert_eq!(events, ["run.claimed", "agent.middleware_stack"]);
    let stack = of(&root.events[1].attributes, "hango.middleware.names");
    let names = r#"["repair_tool_calls","todo","repeat_call","tool_allowlist"]"#;
    assert_eq!(stack.map(ToString::to_string), Some(names.to_owned()));
    for key in ["hango.owner.id", "hango.lease.expires_at", "hango.attempt"] {
        assert!(of(&root.events[0].attributes, key).is_some(), "{key}");
    }
    let links: Vec<_> = root.links.iter().collect();
    let [link] = links.as_slice() else {
        panic!("{links:?}")
    };
    assert_eq!(link.span_context.span_id().to_string(), "b7ad6b7169203331");
    let kind = of(&link.attributes, "hango.link.kind");
    assert_eq!(kind.map(ToString::to_string).as_deref(), Some("created_by"));
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_trace_is_not_recorded_has_no_span() {
    let world = World::new().await;
    world
        .provider
        .then(asks("call_1", "well"))
        .then(says("done"));
    let mut new = world
        .fixture
        .new_run(&world.place.owner, world.place.session.id);
    new.trace.sampled = false;
    let run = world.fixture.accept(new).await;

    let trace = world.trace_of(run.id).await;

    assert!(trace.0.is_empty(), "{:?}", trace.names());
}

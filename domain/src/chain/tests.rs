use std::sync::Mutex;

use async_trait::async_trait;
use futures::executor::block_on;

use super::*;
use crate::conversation::Role;
use crate::fixtures::{context, model_call, reply, said, tool, tool_call, tool_use};
use crate::layers::RepairToolCalls;
use crate::middleware::{MockModelHandler, MockToolHandler};
use crate::model::ModelFailureKind;
use crate::note::Note;
use crate::run::{Todo, TodoStatus};
use crate::tool::Registry;
use crate::tool::ToolFailure;

/// A layer that writes down what passes it, and adds a block and a tool.
struct Recorder {
    name: &'static str,
    log: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Middleware for Recorder {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn before_run(
        &self,
        _run: &RunView<'_>,
        _memory: &mut RunMemory,
    ) -> Result<Option<Vec<Block>>, BeforeRunError> {
        Ok(Some(vec![Block::text(self.name)]))
    }

    fn system_blocks(&self, _memory: &RunMemory) -> Vec<SystemBlock> {
        vec![SystemBlock::new(self.name)]
    }

    fn tools(&self, _memory: &RunMemory) -> Vec<LayerTool> {
        vec![plan_tool(self.name), plan_tool("shared")]
    }

    async fn model(
        &self,
        call: ModelCall,
        memory: &mut RunMemory,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        self.write("in");
        let reply = next.run(call, memory).await;
        self.write("out");
        reply
    }

    async fn tool(&self, call: ToolRequest, batch: &Batch, next: ToolNext<'_>) -> ToolResult {
        self.write("in");
        let result = next.run(call, batch).await;
        self.write("out");
        result
    }

    fn after_run(&self, _memory: &mut RunMemory) {
        self.write("after");
    }
}

impl Recorder {
    fn write(&self, what: &str) {
        let line = format!("{} {what}", self.name);
        self.log.lock().expect("no test panics here").push(line);
    }
}

/// Marks the first block behind which nothing changes, by its index.
struct CacheAt(usize);

#[async_trait]
impl Middleware for CacheAt {
    fn name(&self) -> &'static str {
        "prompt_cache"
    }

    async fn model(
        &self,
        mut call: ModelCall,
        memory: &mut RunMemory,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        call.system[self.0].cache_breakpoint = true;
        next.run(call, memory).await
    }
}

/// Asks once more when the model was unavailable.
struct RetryOnce;

#[async_trait]
impl Middleware for RetryOnce {
    fn name(&self) -> &'static str {
        "retry"
    }

    async fn model(
        &self,
        call: ModelCall,
        memory: &mut RunMemory,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        let mut first = memory.clone();
        match next.run(call.clone(), &mut first).await {
            Err(failure) if failure.kind.is_retryable() => {
                next.notes().add(Note::Retried {
                    layer: self.name(),
                    reason: "the model was unavailable",
                });
                next.run(call, memory).await
            }
            outcome => {
                *memory = first;
                outcome
            }
        }
    }
}

/// Counts, in the memory, the calls that pass it.
struct Count;

#[async_trait]
impl Middleware for Count {
    fn name(&self) -> &'static str {
        "count"
    }

    async fn model(
        &self,
        call: ModelCall,
        memory: &mut RunMemory,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        memory.todos.push(todo("passed"));
        next.run(call, memory).await
    }
}

/// Answers every call itself.
struct ShortCircuit;

#[async_trait]
impl Middleware for ShortCircuit {
    fn name(&self) -> &'static str {
        "short_circuit"
    }

    async fn model(
        &self,
        _call: ModelCall,
        _memory: &mut RunMemory,
        _next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        Ok(reply("from the layer"))
    }

    async fn tool(&self, _call: ToolRequest, _batch: &Batch, _next: ToolNext<'_>) -> ToolResult {
        ToolResult::ok("from the layer")
    }
}

#[test]
fn index_zero_is_outermost_for_model_and_tool_calls() {
    let (chain, log) = recorders(&["a", "b"]);
    let passed = ["a in", "b in", "b out", "a out"];
    let mut model = MockModelHandler::new();
    model.expect_call().once().returning(|_| Ok(reply("hello")));
    let mut base = MockToolHandler::new();
    base.expect_call()
        .once()
        .returning(|_, _| ToolResult::ok("42"));

    let answer = ask(&chain, &mut RunMemory::default(), &model);
    assert_eq!(answer, Ok(reply("hello")));
    assert_eq!(taken(&log), passed);

    let result = block_on(chain.tool(tool_call("get_time"), &batch(), &base));
    assert_eq!(result, ToolResult::ok("42"));
    assert_eq!(taken(&log), passed);

    chain.after_run(&mut RunMemory::default());
    assert_eq!(taken(&log), ["b after", "a after"]);
}

#[test]
fn what_layers_append_before_a_run_is_one_messages_content() {
    let (chain, _) = recorders(&["a", "b"]);
    let context = context();
    let run = RunView {
        context: &context,
        history: &[],
        resumed: false,
        notes: &Notes::default(),
    };

    let appended = block_on(chain.before_run(&run, &mut RunMemory::default()));
    let nothing = block_on(Chain::new(Vec::new()).before_run(&run, &mut RunMemory::default()));

    let both = vec![Block::text("a"), Block::text("b")];
    assert_eq!(appended.ok(), Some(Some(both)));
    assert_eq!(nothing.ok(), Some(None));
}

#[test]
fn results_stand_in_front_of_what_layers_further_out_append() {
    let answer = said(2, Role::Assistant, tool_use("call_1"));
    let context = context();
    let run = RunView {
        context: &context,
        history: &[said(1, Role::User, Block::text("hi")), answer],
        resumed: false,
        notes: &Notes::default(),
    };
    let outer = recorder("outer", &Arc::default());
    let chain = Chain::new(vec![outer, Arc::new(RepairToolCalls)]);

    let appended = block_on(chain.before_run(&run, &mut RunMemory::default()));

    let appended = appended.ok().flatten().unwrap_or_default();
    assert!(matches!(
        appended.as_slice(),
        [Block::ToolResult { .. }, Block::Text { .. }]
    ));
}

#[test]
fn the_agents_block_comes_first_and_a_later_layers_behind_an_earlier_ones() {
    let (chain, _) = recorders(&["a", "b"]);
    let memory = RunMemory::default();
    let prompt = |blocks: &[&str]| -> Vec<SystemBlock> {
        blocks.iter().map(|&text| SystemBlock::new(text)).collect()
    };

    assert_eq!(
        chain.system("be kind", &memory),
        prompt(&["be kind", "a", "b"])
    );
    assert_eq!(chain.system(" \n", &memory), prompt(&["a", "b"]));
}

#[test]
fn a_cache_breakpoint_is_an_index_into_the_prompt_that_is_sent() {
    let log = Arc::default();
    let [before, behind] = ["todo", "memory"].map(|name| recorder(name, &log));
    let chain = Chain::new(vec![before, Arc::new(CacheAt(1)), behind]);
    let mut memory = RunMemory::default();
    let mut call = model_call();
    call.system = chain.system("be kind", &memory);
    let mut model = MockModelHandler::new();
    model
        .expect_call()
        .once()
        .withf(|sent| {
            let breakpoints: Vec<bool> = sent.system.iter().map(|b| b.cache_breakpoint).collect();
            sent.system[1].text == "todo"
                && sent.system[2].text == "memory"
                && breakpoints == [false, true, false]
        })
        .returning(|_| Ok(reply("hello")));

    let answer = block_on(chain.model(call, &mut memory, &model, &Notes::default()));

    assert_eq!(answer, Ok(reply("hello")));
}

#[test]
fn a_retry_starts_from_the_memory_before_the_failed_try() {
    let chain = Chain::new(vec![Arc::new(RetryOnce), Arc::new(Count)]);
    let mut sequence = mockall::Sequence::new();
    let mut model = MockModelHandler::new();
    model
        .expect_call()
        .once()
        .in_sequence(&mut sequence)
        .returning(|_| {
            Err(ModelFailure::new(
                ModelFailureKind::Unavailable,
                "overloaded",
            ))
        });
    model
        .expect_call()
        .once()
        .in_sequence(&mut sequence)
        .withf(|call| *call == model_call())
        .returning(|_| Ok(reply("hello")));
    let mut memory = RunMemory::default();

    let answer = ask(&chain, &mut memory, &model);

    assert_eq!(answer, Ok(reply("hello")));
    assert_eq!(memory.todos, [todo("passed")]);
}

#[test]
fn a_layer_that_answers_itself_keeps_the_call_from_model_and_tool() {
    let chain = Chain::new(vec![Arc::new(ShortCircuit), Arc::new(Count)]);
    let mut memory = RunMemory::default();

    let answer = ask(&chain, &mut memory, &MockModelHandler::new());
    let base = MockToolHandler::new();
    let result = block_on(chain.tool(tool_call("get_time"), &batch(), &base));

    assert_eq!(answer, Ok(reply("from the layer")));
    assert_eq!(result, ToolResult::ok("from the layer"));
    assert_eq!(memory, RunMemory::default());
}

#[test]
fn an_illegal_conversation_reaches_no_model_whichever_layer_made_it() {
    let mut call = model_call();
    call.messages = Arc::new(vec![said(1, Role::Assistant, Block::text("hello"))]);
    let chain = Chain::new(Vec::new());
    let mut memory = RunMemory::default();

    let model = MockModelHandler::new();
    let answer = block_on(chain.model(call, &mut memory, &model, &Notes::default()));

    assert_eq!(
        answer,
        Err(ModelFailure::new(
            ModelFailureKind::Rejected,
            "the conversation is not legal: message 0 is out of turn"
        ))
    );
}

#[test]
fn the_model_sees_registered_tools_first_and_each_name_once() {
    let (chain, _) = recorders(&["a", "b"]);
    let view = registry(&["get_time", "a"]).view(&[]);

    let tools = chain.tools(&view, &RunMemory::default());

    assert_eq!(tools, ["get_time", "a", "shared", "b"].map(tool));
}

#[test]
fn a_layers_tool_works_on_the_memory_of_the_batch() {
    let (chain, _) = recorders(&["a"]);
    let view = registry(&["get_time"]).view(&[]);
    let batch = batch();

    let result = block_on(chain.execute(tool_call("a"), &view, &batch));

    assert_eq!(result, ToolResult::ok("1"));
    assert_eq!(
        chain.idempotency("a", &view, &RunMemory::default()),
        Some(Idempotency::Safe)
    );
    assert_eq!(batch.into_memory().todos, [todo("a")]);
}

#[test]
fn a_registered_tool_stands_before_a_layers_of_the_same_name() {
    let (chain, _) = recorders(&["a"]);
    let view = registry(&["a"]).view(&[]);
    let memory = RunMemory::default();

    let result = block_on(chain.execute(tool_call("a"), &view, &batch()));

    assert_eq!(result, ToolResult::ok("registered"));
    assert_eq!(
        chain.idempotency("a", &view, &memory),
        Some(Idempotency::Keyed)
    );
    assert_eq!(chain.idempotency("b", &view, &memory), None);
}

#[test]
fn a_layers_tool_that_panics_brings_an_error_result_and_changes_nothing() {
    let mut tool = plan_tool("a");
    tool.execute = Arc::new(|_, memory| {
        memory.todos.push(todo("half"));
        panic!("boom")
    });
    let request = tool_call("a");
    let mut memory = RunMemory::default();

    let result = tool.call(&request.as_layer_call(&batch()), &mut memory);

    let expected = ToolResult::failed(ToolFailure::Panic, "the tool panicked: boom");
    assert_eq!(result, expected);
    assert_eq!(memory, RunMemory::default());
}

#[test]
fn a_tool_that_nobody_has_brings_an_error_result() {
    let (chain, _) = recorders(&["a"]);

    let result = block_on(chain.execute(tool_call("nobody"), &View::default(), &batch()));

    let text = r#"there is no tool "nobody""#;
    assert_eq!(result, ToolResult::failed(ToolFailure::UnknownTool, text));
}

fn ask(
    chain: &Chain,
    memory: &mut RunMemory,
    model: &MockModelHandler,
) -> Result<ModelReply, ModelFailure> {
    block_on(chain.model(model_call(), memory, model, &Notes::default()))
}

fn recorders(names: &[&'static str]) -> (Chain, Arc<Mutex<Vec<String>>>) {
    let log = Arc::default();
    let layers = names.iter().map(|name| recorder(name, &log)).collect();
    (Chain::new(layers), log)
}

fn recorder(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Middleware> {
    let log = Arc::clone(log);
    Arc::new(Recorder { name, log })
}

fn taken(log: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut log.lock().expect("no test panics here"))
}

/// Adds its name to the plan and tells the call's position.
fn plan_tool(name: &'static str) -> LayerTool {
    LayerTool {
        definition: tool(name),
        idempotency: Idempotency::Safe,
        execute: Arc::new(move |call, memory| {
            memory.todos.push(todo(name));
            ToolResult::ok(call.position.to_string())
        }),
    }
}

struct Registered(&'static str);

#[async_trait]
impl crate::tool::Tool for Registered {
    fn definition(&self) -> ToolDef {
        tool(self.0)
    }

    fn idempotency(&self) -> Idempotency {
        Idempotency::Keyed
    }

    async fn execute(&self, _invocation: crate::tool::Invocation) -> ToolResult {
        ToolResult::ok("registered")
    }
}

fn registry(names: &[&'static str]) -> Registry {
    let mut registry = Registry::new();
    for name in names {
        let registered = registry.register(Arc::new(Registered(name)));
        assert_eq!(registered, Ok(()));
    }
    registry
}

fn todo(content: &str) -> Todo {
    Todo {
        content: content.to_owned(),
        status: TodoStatus::Pending,
    }
}

fn batch() -> Batch {
    Batch::new(RunMemory::default(), Notes::default())
}

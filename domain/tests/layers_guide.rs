//! The example of `docs/layers.md`, compiled and executed; the guide shows the marked regions, and a test
//! compares the two.

// region: layer
use std::sync::Arc;

use async_trait::async_trait;
use hango_domain::conversation::Block;
use hango_domain::memory::{MemoryError, RunMemory};
use hango_domain::middleware::{
    Batch, BeforeRunError, LayerCall, LayerTool, Middleware, ModelNext, RunView, ToolNext,
    ToolRequest,
};
use hango_domain::model::{ModelCall, ModelFailure, ModelReply, SystemBlock};
use hango_domain::note::Note;
use hango_domain::tool::{Idempotency, ToolDef, ToolResult, schema};
use serde::{Deserialize, Serialize};

const POLICY: &str = "Tells how many tool calls are left when those of this answer are made. Use it \
                      before you begin something that takes many.";

/// A run makes at most `most` tool calls. Further ones are answered with an error, and not executed.
struct ToolBudget {
    most: u32,
}

/// What the layer remembers of a run.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spent {
    /// Calls that the model made, those that were refused too.
    calls: u32,
}

/// What the layer keeps for one batch: the calls that were made before it; `None` until it is charged.
type Before = Option<u32>;

impl ToolBudget {
    const NAME: &'static str = "tool_budget";
    const TOOL: &'static str = "tool_calls_left";

    /// How many calls the run had made when this one came up. The first call of a batch to arrive
    /// charges all of them, so that the order in which they are executed does not matter.
    fn made_before(call: &ToolRequest, batch: &Batch) -> Result<u32, MemoryError> {
        let before = batch.change(|memory| {
            batch.scratch(Self::NAME, |before: &mut Before| {
                if let Some(before) = *before {
                    return Ok(before);
                }
                let mut spent = Self::spent(memory)?;
                let made = spent.calls;
                let more = u32::try_from(batch.calls().len()).unwrap_or(u32::MAX);
                spent.calls = made.saturating_add(more);
                memory.store(Self::NAME, &spent)?;
                *before = Some(made);
                Ok(made)
            })
        })?;
        let ahead = batch
            .calls()
            .iter()
            .filter(|other| other.position < call.position);
        Ok(before.saturating_add(u32::try_from(ahead.count()).unwrap_or(u32::MAX)))
    }

    fn spent(memory: &RunMemory) -> Result<Spent, MemoryError> {
        Ok(memory.load(Self::NAME)?.unwrap_or_default())
    }
}

#[async_trait]
impl Middleware for ToolBudget {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Makes sure that there is a count, and that it can be read.
    async fn before_run(
        &self,
        run: &RunView<'_>,
        memory: &mut RunMemory,
    ) -> Result<Option<Vec<Block>>, BeforeRunError> {
        if memory.load::<Spent>(Self::NAME)?.is_none() {
            if run.resumed {
                run.notes.add(Note::StateMissing { layer: Self::NAME });
            }
            memory.store(Self::NAME, &Spent::default())?;
        }
        Ok(None)
    }

    /// The same on every call: a block that changed would spoil a provider's cache from there on.
    fn system_blocks(&self, _memory: &RunMemory) -> Vec<SystemBlock> {
        let most = self.most;
        vec![SystemBlock::new(format!(
            "You can make {most} tool calls in this run."
        ))]
    }

    fn tools(&self, _memory: &RunMemory) -> Vec<LayerTool> {
        let most = self.most;
        let left = move |_: &LayerCall<'_>, memory: &mut RunMemory| match Self::spent(memory) {
            Ok(spent) => ToolResult::ok(most.saturating_sub(spent.calls).to_string()),
            Err(error) => ToolResult::error(error.to_string()),
        };
        vec![LayerTool {
            definition: ToolDef {
                name: Self::TOOL.to_owned(),
                description: POLICY.to_owned(),
                parameters: schema::object([]),
            },
            // It reads, and nothing else.
            idempotency: Idempotency::Safe,
            execute: Arc::new(left),
        }]
    }

    /// Tells the model, behind everything that stays the same, when nothing is left.
    async fn model(
        &self,
        mut call: ModelCall,
        memory: &mut RunMemory,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        // `before_run` has seen that it can be read.
        if Self::spent(memory).is_ok_and(|spent| spent.calls >= self.most) {
            let last = SystemBlock::new("No tool call is left. Answer with what you have.");
            call.system.push(last);
            next.notes().add(Note::RequestRewritten {
                layer: Self::NAME,
                reason: "no tool call is left",
            });
        }
        next.run(call, memory).await
    }

    async fn tool(&self, call: ToolRequest, batch: &Batch, next: ToolNext<'_>) -> ToolResult {
        match Self::made_before(&call, batch) {
            Ok(made) if made < self.most => next.run(call, batch).await,
            Ok(_) => {
                batch.notes().add(Note::ShortCircuited {
                    layer: Self::NAME,
                    reason: "no tool call is left",
                });
                ToolResult::error(format!(
                    "not executed: this run may make {} tool calls",
                    self.most
                ))
            }
            Err(error) => ToolResult::error(format!("the call was not executed: {error}")),
        }
    }
}
// endregion: layer

mod tests {
    use std::collections::BTreeMap;

    use futures::executor::block_on;
    use hango_domain::conversation::{Message, Role, StopReason, Usage};
    use hango_domain::model::CallContext;
    use hango_domain::{
        AgentId, MessageId, RunId, RunTrace, SessionId, SpanId, TenantId, Timestamp, TraceId,
    };
    use serde_json::Map;
    use uuid::Uuid;

    use super::*;

    // region: tests
    use hango_domain::chain::Chain;
    use hango_domain::middleware::{MockModelHandler, MockToolHandler, ToolHandler};
    use hango_domain::note::Notes;
    use hango_domain::tool::View;

    /// Executes a layer's tools, as the application does.
    struct Executing(Chain);

    #[async_trait]
    impl ToolHandler for Executing {
        async fn call(&self, call: ToolRequest, batch: &Batch) -> ToolResult {
            self.0.execute(call, &View::default(), batch).await
        }
    }

    fn chain(most: u32) -> Chain {
        Chain::new(vec![Arc::new(ToolBudget { most })])
    }

    fn remembers(calls: u32) -> RunMemory {
        let mut memory = RunMemory::default();
        let stored = memory.store(ToolBudget::NAME, &Spent { calls });
        stored.expect("a JSON form");
        memory
    }

    #[test]
    fn of_a_batch_the_first_calls_are_executed_whichever_comes_first() {
        let calls: Vec<_> = (1..=3).map(|position| call(position, "get_time")).collect();
        let batch = Batch::new(remembers(1), Notes::default()).of(calls.clone());
        let mut tool = MockToolHandler::new();
        tool.expect_call()
            .times(2)
            .returning(|call, _| ToolResult::ok(call.position.to_string()));

        let chain = chain(3);
        let [third, first, second] =
            [2, 0, 1].map(|at| block_on(chain.tool(calls[at].clone(), &batch, &tool)));

        assert_eq!([first, second], ["1", "2"].map(ToolResult::ok));
        assert_eq!(
            third,
            ToolResult::error("not executed: this run may make 3 tool calls")
        );
        let refused = Note::ShortCircuited {
            layer: "tool_budget",
            reason: "no tool call is left",
        };
        assert_eq!(batch.notes().take(), [refused]);
        assert_eq!(batch.into_memory(), remembers(4));
    }

    #[test]
    fn a_batch_that_goes_on_in_a_new_attempt_is_charged_once() {
        let calls = vec![call(1, "get_time"), call(2, "get_time")];
        let chain = chain(2);
        // The first call's result is on record; the memory is that of the boundary before the batch.
        let batch = Batch::new(remembers(0), Notes::default()).of(calls.clone());
        let mut tool = MockToolHandler::new();
        tool.expect_call()
            .once()
            .returning(|_, _| ToolResult::ok("again"));

        let view = View::default();
        block_on(chain.replay(calls[0].clone(), ToolResult::ok("1"), &view, &batch));
        let second = block_on(chain.tool(calls[1].clone(), &batch, &tool));

        assert_eq!(second, ToolResult::ok("again"));
        assert_eq!(batch.into_memory(), remembers(2));
    }

    #[test]
    fn the_tool_tells_what_is_left_and_costs_a_call_like_any_other() {
        let asks = call(1, "tool_calls_left");
        let batch = Batch::new(remembers(4), Notes::default()).of(vec![asks.clone()]);
        let chain = chain(10);

        let result = block_on(chain.tool(asks, &batch, &Executing(chain.clone())));

        assert_eq!(result, ToolResult::ok("5"));
        assert_eq!(batch.into_memory(), remembers(5));
    }

    #[test]
    fn the_model_is_told_at_the_end_of_its_prompt_when_nothing_is_left() {
        // Says what it read last.
        let mut model = MockModelHandler::new();
        model
            .expect_call()
            .times(2)
            .returning(|sent| Ok(reply(&sent.system[sent.system.len() - 1].text)));
        let chain = chain(2);
        let ask = |made| {
            let mut memory = remembers(made);
            let mut call = model_call();
            call.system = chain.system("be kind", &memory);
            block_on(chain.model(call, &mut memory, &model, &Notes::default()))
        };

        assert_eq!(ask(1), Ok(reply("You can make 2 tool calls in this run.")));
        let last = "No tool call is left. Answer with what you have.";
        assert_eq!(ask(2), Ok(reply(last)));
    }

    #[test]
    fn a_resumed_run_without_a_count_begins_anew_and_says_so() {
        let (notes, context) = (Notes::default(), context());
        let run = RunView {
            context: &context,
            history: &[],
            resumed: true,
            notes: &notes,
        };
        let mut memory = RunMemory::default();

        let appended = block_on(chain(2).before_run(&run, &mut memory));

        assert_eq!(appended.ok(), Some(None));
        assert_eq!(memory, remembers(0));
        let layer = "tool_budget";
        assert_eq!(notes.take(), [Note::StateMissing { layer }]);
    }
    // endregion: tests

    fn context() -> CallContext {
        CallContext {
            tenant: TenantId(Uuid::from_u128(1)),
            agent: AgentId(Uuid::from_u128(2)),
            session: SessionId(Uuid::from_u128(3)),
            run: RunId(Uuid::from_u128(4)),
            turn: 1,
            attempt: 1,
            trace: RunTrace {
                trace_id: TraceId([1; 16]),
                span_id: SpanId([2; 8]),
                sampled: true,
                created_by_traceparent: None,
            },
        }
    }

    fn call(position: u32, name: &str) -> ToolRequest {
        ToolRequest {
            context: Arc::new(context()),
            position,
            name: name.to_owned(),
            input: Map::new(),
            tool_use_id: format!("call_{position}"),
            idempotency_key: format!("key_{position}"),
        }
    }

    fn model_call() -> ModelCall {
        let said = Message {
            id: MessageId(Uuid::from_u128(5)),
            session_id: context().session,
            run_id: None,
            seq: 1,
            role: Role::User,
            content: vec![Block::text("hi")],
            stop_reason: None,
            usage: None,
            partial: false,
            created_at: Timestamp::from_micros(0),
        };
        ModelCall {
            context: Arc::new(context()),
            model: "m".to_owned(),
            system: Vec::new(),
            messages: Arc::new(vec![said]),
            tools: Vec::new(),
            max_tokens: None,
            temperature: None,
        }
    }

    fn reply(text: &str) -> ModelReply {
        ModelReply {
            content: vec![Block::text(text)],
            stop_reason: StopReason::EndTurn,
            usage: Usage::default(),
            invalid_inputs: BTreeMap::new(),
        }
    }

    #[test]
    fn the_guide_shows_this_file() {
        let guide = include_str!("../../docs/layers.md");
        let file = include_str!("layers_guide.rs");
        for region in ["layer", "tests"] {
            let shown = between(guide, &format!("<!-- {region} -->\n```rust\n"), "```\n");
            let begin = format!("// region: {region}\n");
            let written = between(file, &begin, &format!("// endregion: {region}\n"));
            assert_eq!(shown, dedented(written), "the region {region}");
        }
    }

    fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
        let (_, behind) = text.split_once(begin).expect("its beginning");
        let (inside, _) = behind.split_once(end).expect("its end");
        inside
    }

    /// Less by what its first line is set in; blank lines and what stands further left stay.
    fn dedented(region: &str) -> String {
        let indent = region.len() - region.trim_start_matches(' ').len();
        let indent = " ".repeat(indent);
        region.lines().fold(String::new(), |text, line| {
            text + line.strip_prefix(&indent).unwrap_or(line).trim_end() + "\n"
        })
    }
}

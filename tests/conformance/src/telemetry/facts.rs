//! All there is to know of runs, turns, calls and requests, as extreme as it can be.

use std::sync::Arc;

use hango_domain::conversation::{Block, Message, Role, StopReason, Usage};
use hango_domain::model::{AnswerNames, CallContext, SystemBlock};
use hango_domain::note::Note;
use hango_domain::run::RunStatus;
use hango_domain::tool::{ToolDef, ToolFailure, ToolResult};
use hango_domain::{MessageId, OwnerId, SpanId, Timestamp, TraceId, UserId};
use hango_ports::provider::ServerAddress;
use hango_ports::telemetry::{
    ErrorType, HooksRan, Interval, Life, ModelContent, ModelTry, Observation, RequestServed,
    RequestTrace, RunContent, RunEnd, RunFacts, TodoCounts, ToolContent, ToolFacts, TurnEnd,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

const BEGINNING: Timestamp = Timestamp::from_micros(i64::MIN);
const END: Timestamp = Timestamp::from_micros(i64::MAX);

/// One of every kind for a run.
pub(super) fn every_kind(context: &Arc<CallContext>) -> Vec<Observation> {
    let about = &Arc::new(about(context));
    let layer = "todo";
    let tool = tool(about, context);
    let mut turn = TurnEnd {
        about: Arc::clone(about),
        turn: u32::MAX,
        attempt: 0,
        took: Interval {
            begun: END,
            ended: BEGINNING,
        },
        error: Some(ErrorType::WORKER_LOST),
        notes: Vec::new(),
    };
    let whole = Observation::TurnEnded(Box::new(turn.clone()));
    turn.notes = vec![(END, Note::StateMissing { layer }); 256];
    vec![
        Observation::HooksRan(Box::new(HooksRan {
            about: Arc::clone(about),
            took: ALWAYS,
            hooks: vec![(layer, ALWAYS); 8],
        })),
        Observation::ModelTried(Box::new(model_try(about, context))),
        Observation::ToolCalled {
            context: Arc::clone(context),
            tool: tool.tool.clone(),
            took: std::time::Duration::MAX,
            is_error: false,
            facts: Some(Box::new(tool.clone())),
        },
        Observation::ToolSettled(Box::new(tool)),
        whole,
        Observation::TurnEnded(Box::new(turn)),
        ended(about),
        Observation::RequestServed(Box::new(RequestServed {
            trace: Some(RequestTrace {
                trace_id: TraceId([0xff; 16]),
                span_id: SpanId([0xff; 8]),
                parent: Some(SpanId([0; 8])),
                sampled: true,
            }),
            method: None,
            route: None,
            status: None,
            took: ALWAYS,
        })),
    ]
}

const ALWAYS: Interval = Interval {
    begun: BEGINNING,
    ended: END,
};

fn about(context: &CallContext) -> RunFacts {
    RunFacts {
        run: context.run,
        tenant: context.tenant,
        agent: context.agent,
        agent_name: "\u{0}\n".repeat(64),
        agent_slug: String::new(),
        session: context.session,
        created_by: UserId(Uuid::max()),
        lane: String::new(),
        provider: None,
        model: None,
        trace: context.trace.clone(),
    }
}

fn model_try(about: &Arc<RunFacts>, context: &Arc<CallContext>) -> ModelTry {
    let said = vec![Block::text("\u{0}\u{1f600}".repeat(1 << 8))];
    ModelTry {
        about: Arc::clone(about),
        context: Arc::clone(context),
        took: ALWAYS,
        provider: "",
        server: Some(ServerAddress {
            host: String::new(),
            port: u16::MAX,
        }),
        model: String::new(),
        max_tokens: Some(u32::MAX),
        temperature: Some(f64::NAN),
        names: AnswerNames::default(),
        stop_reason: Some(StopReason::Refusal),
        usage: Usage {
            input_tokens: 0,
            output_tokens: u64::MAX,
            cache_read_tokens: u64::MAX,
            cache_write_tokens: u64::MAX,
            estimated: true,
        },
        first_chunk: Some(BEGINNING),
        error: Some(ErrorType::of_status(u16::MAX)),
        content: Some(ModelContent {
            system: vec![SystemBlock::new("")],
            messages: Arc::new(vec![
                Message {
                    id: MessageId(Uuid::nil()),
                    session_id: context.session,
                    run_id: None,
                    seq: u64::MAX,
                    role: Role::Assistant,
                    content: said.clone(),
                    stop_reason: None,
                    usage: None,
                    partial: true,
                    created_at: END,
                };
                4
            ]),
            tools: vec![ToolDef {
                name: String::new(),
                description: String::new(),
                parameters: Value::Null,
            }],
            answer: said,
        }),
    }
}

fn tool(about: &Arc<RunFacts>, context: &Arc<CallContext>) -> ToolFacts {
    ToolFacts {
        about: Arc::clone(about),
        context: Arc::clone(context),
        took: ALWAYS,
        tool: "\u{0}".to_owned(),
        tool_use_id: String::new(),
        description: Some("d".repeat(1 << 10)),
        executed: true,
        failure: Some(ToolFailure::Other),
        content: Some(ToolContent {
            arguments: Map::from_iter([(String::new(), json!(vec!["a"; 64]))]),
            result: ToolResult::ok("r".repeat(1 << 10)),
        }),
    }
}

fn ended(about: &Arc<RunFacts>) -> Observation {
    let life = [
        Life::Claimed {
            owner: None,
            lease_expires_at: None,
            attempt: 0,
        },
        Life::Reclaimed {
            previous_owner: Some(OwnerId(Uuid::nil())),
            resume_turn: u32::MAX,
            attempt: u32::MAX,
        },
        Life::Layers(vec!["todo"; 64]),
        Life::Noted(Note::StateMissing { layer: "todo" }),
    ];
    Observation::RunEnded {
        run: about.run,
        status: RunStatus::Failed,
        end: Some(Box::new(RunEnd {
            about: Arc::clone(about),
            created_at: END,
            started_at: Some(BEGINNING),
            ended_at: BEGINNING,
            status: RunStatus::Failed,
            error: None,
            stop_reason: None,
            iterations: u32::MAX,
            inference_calls: u32::MAX,
            tool_calls: u32::MAX,
            attempts: 0,
            usage: Usage::default(),
            todos: Some(TodoCounts {
                total: usize::MAX,
                completed: 0,
            }),
            life: life.map(|life| (END, life)).into(),
            content: Some(RunContent {
                input: Vec::new(),
                answer: Vec::new(),
            }),
        })),
    }
}

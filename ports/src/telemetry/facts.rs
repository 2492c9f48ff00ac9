//! What is known of a run, a turn, a call or a request when it is over. Content stands apart, and is there
//! only where somebody wants it.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::agent::AgentSnapshot;
use hango_domain::conversation::{Block, Message, StopReason, Usage};
use hango_domain::model::{AnswerNames, CallContext, SystemBlock};
use hango_domain::note::Note;
use hango_domain::run::{Run, RunStatus, Todo, TodoStatus};
use hango_domain::tool::{ToolDef, ToolFailure, ToolResult};
use hango_domain::{
    AgentId, OwnerId, RunId, RunTrace, SessionId, SpanId, TenantId, Timestamp, TraceId, UserId,
};
use serde_json::{Map, Value};

use super::ErrorType;
use crate::provider::ServerAddress;

/// From when to when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Interval {
    /// When it began.
    pub begun: Timestamp,
    /// When it was over.
    pub ended: Timestamp,
}

/// Whose run it is: the same in everything that is told of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunFacts {
    /// The run.
    pub run: RunId,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its agent.
    pub agent: AgentId,
    /// The agent's name for people, as it was when the run was accepted.
    pub agent_name: String,
    /// The agent's name in URLs.
    pub agent_slug: String,
    /// Its conversation.
    pub session: SessionId,
    /// In whose name it executes.
    pub created_by: UserId,
    /// The queue it waited in.
    pub lane: String,
    /// The kind of its provider; `None` where that is not known any more.
    pub provider: Option<String>,
    /// Its model; `None` where that is not known any more.
    pub model: Option<String>,
    /// Its trace.
    pub trace: RunTrace,
}

impl RunFacts {
    /// Those of a run. An agent that cannot be read is called by its id.
    #[must_use]
    pub fn new(run: &Run, agent: Option<&AgentSnapshot>, provider: Option<String>) -> Self {
        let named = |name: fn(&AgentSnapshot) -> &String| {
            agent.map_or_else(|| run.agent_id.to_string(), |agent| name(agent).clone())
        };
        Self {
            run: run.id,
            tenant: run.tenant_id,
            agent: run.agent_id,
            agent_name: named(|agent| &agent.name),
            agent_slug: named(|agent| &agent.slug),
            session: run.session_id,
            created_by: run.created_by,
            lane: run.lane.clone(),
            provider,
            model: agent.map(|agent| agent.settings.model.clone()),
            trace: run.trace.clone(),
        }
    }
}

/// The layers prepared a run.
#[derive(Clone, Debug, PartialEq)]
pub struct HooksRan {
    /// The run.
    pub about: Arc<RunFacts>,
    /// How long all of it took.
    pub took: Interval,
    /// The layers in their order, and how long each took.
    pub hooks: Vec<(&'static str, Interval)>,
}

/// A provider was asked once.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelTry {
    /// The run.
    pub about: Arc<RunFacts>,
    /// For which call.
    pub context: Arc<CallContext>,
    /// How long it took.
    pub took: Interval,
    /// The kind of the provider.
    pub provider: &'static str,
    /// Where it is.
    pub server: Option<ServerAddress>,
    /// The model that was asked for.
    pub model: String,
    /// The most it might answer, in tokens.
    pub max_tokens: Option<u32>,
    /// The temperature that was asked for.
    pub temperature: Option<f64>,
    /// What the provider calls its answer.
    pub names: AnswerNames,
    /// Why it stopped; `None` if it did not.
    pub stop_reason: Option<StopReason>,
    /// What it cost, as far as is known.
    pub usage: Usage,
    /// When its answer began to arrive.
    pub first_chunk: Option<Timestamp>,
    /// What went wrong.
    pub error: Option<ErrorType>,
    /// What was said.
    pub content: Option<ModelContent>,
}

impl ModelTry {
    /// The same, but for what was said.
    #[must_use]
    pub fn without_content(&self) -> Self {
        Self {
            about: Arc::clone(&self.about),
            context: Arc::clone(&self.context),
            took: self.took,
            provider: self.provider,
            server: self.server.clone(),
            model: self.model.clone(),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            names: self.names.clone(),
            stop_reason: self.stop_reason,
            usage: self.usage,
            first_chunk: self.first_chunk,
            error: self.error.clone(),
            content: None,
        }
    }
}

/// What was said in a model call.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelContent {
    /// The system prompt.
    pub system: Vec<SystemBlock>,
    /// The conversation.
    pub messages: Arc<Vec<Message>>,
    /// The tools that were offered.
    pub tools: Vec<ToolDef>,
    /// The answer.
    pub answer: Vec<Block>,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFacts {
    /// The run.
    pub about: Arc<RunFacts>,
    /// For which call.
    pub context: Arc<CallContext>,
    /// How long it took.
    pub took: Interval,
    /// The tool, as the model spelled it.
    pub tool: String,
    /// The model's id of the call.
    pub tool_use_id: String,
    /// What the model was told of the tool.
    pub description: Option<String>,
    /// Whether a tool was executed: a layer may answer in its place.
    pub executed: bool,
    /// What went wrong.
    pub failure: Option<ToolFailure>,
    /// What was said.
    pub content: Option<ToolContent>,
}

impl ToolFacts {
    /// The same, but for what was said.
    #[must_use]
    pub fn without_content(&self) -> Self {
        Self {
            about: Arc::clone(&self.about),
            context: Arc::clone(&self.context),
            took: self.took,
            tool: self.tool.clone(),
            tool_use_id: self.tool_use_id.clone(),
            description: self.description.clone(),
            executed: self.executed,
            failure: self.failure,
            content: None,
        }
    }
}

/// What was said in a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolContent {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The result.
    pub result: ToolResult,
}

/// A turn in one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    /// The run.
    pub about: Arc<RunFacts>,
    /// The turn, counting from 1.
    pub turn: u32,
    /// The attempt, counting from 1.
    pub attempt: u32,
    /// How long it took.
    pub took: Interval,
    /// Why it was not completed, where that is a failure.
    pub error: Option<ErrorType>,
    /// What layers did, and when.
    pub notes: Vec<(Timestamp, Note)>,
}

/// A run that ended, however and through whomever.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// The run.
    pub about: Arc<RunFacts>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it was claimed first; `None` if it never was.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How.
    pub status: RunStatus,
    /// Why it failed.
    pub error: Option<ErrorType>,
    /// Why its model stopped last.
    pub stop_reason: Option<StopReason>,
    /// Model calls whose turn was completed.
    pub iterations: u32,
    /// Model calls that were made, as far as is known: those of this attempt with all their tries, and before it
    /// those whose turn was completed.
    pub inference_calls: u32,
    /// Tool calls that its models asked for.
    pub tool_calls: u32,
    /// How often it was claimed.
    pub attempts: u32,
    /// What those calls cost.
    pub usage: Usage,
    /// Its plan, if it has one.
    pub todos: Option<TodoCounts>,
    /// What happened to it, in order.
    pub life: Vec<(Timestamp, Life)>,
    /// What was said.
    pub content: Option<RunContent>,
}

impl RunEnd {
    /// The same, but for what was said.
    #[must_use]
    pub fn without_content(&self) -> Self {
        Self {
            about: Arc::clone(&self.about),
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            status: self.status,
            error: self.error.clone(),
            stop_reason: self.stop_reason,
            iterations: self.iterations,
            inference_calls: self.inference_calls,
            tool_calls: self.tool_calls,
            attempts: self.attempts,
            usage: self.usage,
            todos: self.todos,
            life: self.life.clone(),
            content: None,
        }
    }

    /// How long it took, from its first claim; from its acceptance, if there was none.
    #[must_use]
    pub fn took(&self) -> Interval {
        Interval {
            begun: self.started_at.unwrap_or(self.created_at),
            ended: self.ended_at,
        }
    }

    /// How long the run waited for its first claim, or for its end.
    #[must_use]
    pub fn waited(&self) -> Duration {
        let until = self.started_at.unwrap_or(self.ended_at);
        until.since(self.created_at)
    }
}

/// How much of a plan is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TodoCounts {
    /// All items.
    pub total: usize,
    /// Those that are done.
    pub completed: usize,
}

impl TodoCounts {
    /// Those of a plan; `None` if it is empty.
    #[must_use]
    pub fn of(todos: &[Todo]) -> Option<Self> {
        let done = |todo: &&Todo| todo.status == TodoStatus::Completed;
        (!todos.is_empty()).then(|| Self {
            total: todos.len(),
            completed: todos.iter().filter(done).count(),
        })
    }
}

/// Something that happened to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Life {
    /// It was claimed.
    Claimed {
        /// By which process, if that was kept.
        owner: Option<OwnerId>,
        /// Until when the claim held then.
        lease_expires_at: Option<Timestamp>,
        /// Which claim, counting from 1.
        attempt: u32,
    },
    /// The sweep took it back.
    Reclaimed {
        /// From which process, if that was kept.
        previous_owner: Option<OwnerId>,
        /// The last completed turn.
        resume_turn: u32,
        /// The claim that was in force.
        attempt: u32,
    },
    /// Its layers were put together.
    Layers(Vec<&'static str>),
    /// A layer reported something that belongs to no turn.
    Noted(Note),
}

/// What a run was asked and answered.
#[derive(Clone, Debug, PartialEq)]
pub struct RunContent {
    /// What its caller said.
    pub input: Vec<Block>,
    /// What it answered last.
    pub answer: Vec<Block>,
}

/// A request that was answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestServed {
    /// Its trace; `None` where requests are not traced.
    pub trace: Option<RequestTrace>,
    /// Its method; `None` for one that HTTP does not name.
    pub method: Option<&'static str>,
    /// Which of the API's routes it took, as a pattern; `None` if none.
    pub route: Option<String>,
    /// The status of its answer; `None` if its client did not wait for one.
    pub status: Option<u16>,
    /// By the wall clock.
    pub took: Interval,
}

/// The span of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestTrace {
    /// The trace: the caller's, where he has one.
    pub trace_id: TraceId,
    /// This request's span.
    pub span_id: SpanId,
    /// The caller's span.
    pub parent: Option<SpanId>,
    /// Whether it is recorded.
    pub sampled: bool,
}

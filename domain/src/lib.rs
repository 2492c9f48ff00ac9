//! Pure rules of a durable agent run.
//!
//! Nothing in this crate performs I/O, reads a clock, draws a random number or starts a task. It
//! answers:
//!
//! * *May this run change in this way?* — [`run::Run::apply`].
//! * *What must happen next?* — the agent loop.
//! * *What do the layers make of this call?* — the chain.
//!
//! Callers bring time, ids, storage and models, and report back what happened. `async` appears only
//! where a layer or a tool must wait for what it wraps; no runtime is named.

pub mod access;
pub mod accumulator;
pub mod agent;
pub mod agent_loop;
pub mod canonical;
pub mod chain;
pub mod conversation;
pub mod event;
pub mod explain;
#[cfg(test)]
mod fixtures;
pub mod id;
pub mod journal;
pub mod json;
pub mod layers;
pub mod memory;
pub mod middleware;
pub mod model;
pub mod note;
pub mod people;
pub mod queue;
pub mod retention;
pub mod retry;
pub mod run;
pub mod session;
pub mod text;
pub mod timestamp;
pub mod tool;
pub mod trace;
pub mod usage;

pub use id::{
    AgentId, ApiKeyId, AuditId, MessageId, OwnerId, RunId, SessionId, TenantId, ToolCallId, UserId,
};
pub use timestamp::Timestamp;
pub use trace::{RunTrace, Sampling, SpanId, TraceId};

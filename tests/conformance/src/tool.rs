//! What every tool must do, as `domain/src/tool` says it.
//!
//! [`every`] looks at nothing but the port. [`remote`] is for tools that reach another process: it looks
//! at the other side too.

pub mod every;
pub mod remote;

use std::sync::Arc;
use std::time::Duration;

use hango_domain::RunId;
use hango_ports::Tool;
use hango_ports::tool::Invocation;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::other_side::OtherSide;

/// A tool, and how it is called.
#[derive(Clone)]
pub struct Sample {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Arguments with which a call goes well.
    pub good: Map<String, Value>,
}

/// What the service behind a tool does with each call.
#[derive(Clone, Debug)]
pub enum Service {
    /// Answers with this text.
    Answers(String),
    /// Fails, and quotes the secrets that it was called with.
    Fails,
    /// Takes the call and says nothing.
    Hangs,
    /// Answers, and does not end.
    Endless,
}

/// A tool that reaches another process, and that process.
pub struct RemoteTool {
    /// The tool, and how it is called.
    pub sample: Sample,
    /// Whom it reaches.
    pub other_side: Arc<dyn OtherSide>,
    /// What it was configured with that no model may read, its address included.
    pub secrets: Vec<String>,
    /// The most bytes that a result of it may have.
    pub most_bytes: usize,
}

/// How long a tool may take where it has all the time it needs.
const AMPLE: Duration = Duration::from_mins(1);

/// How long it may take where its service is silent.
const SHORT: Duration = Duration::from_millis(100);

/// One execution with these arguments; `n` tells calls apart.
fn invocation(input: Map<String, Value>, n: u32) -> Invocation {
    Invocation {
        input,
        run: RunId(Uuid::from_u128(7)),
        tool_use_id: format!("call_{n}"),
        idempotency_key: format!("key-of-call-{n}"),
        traceparent: "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01".to_owned(),
    }
}

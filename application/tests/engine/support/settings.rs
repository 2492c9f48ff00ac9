//! How the engines of the tests work, and conversations as text.

use std::time::Duration;

use hango_application::engine::EngineSettings;
use hango_domain::agent::RunLimits;
use hango_domain::conversation::{Block, Message};
use hango_domain::retry::RetryPolicy;
use hango_domain::run::{RunErrorCode, RunState};

/// The settings of an engine on a paused clock: nothing expires unless a test says so.
pub(crate) fn settings() -> EngineSettings {
    EngineSettings {
        workers: 4,
        lease_ttl: Duration::from_hours(48),
        heartbeat: Duration::from_hours(1),
        reclaim_interval: Duration::from_secs(5),
        poll_interval: Duration::from_secs(1),
        max_stalled: 5,
        running_per_tenant: 0,
        limits: RunLimits {
            max_iterations: 10,
            tool_timeout: Duration::from_secs(10),
            deadline: Duration::from_mins(10),
        },
        tool_concurrency: 4,
        tool_output_max_bytes: 1024,
        repeat_call_threshold: 3,
        retry: RetryPolicy {
            max_retries: 2,
            inline_wait: Duration::from_secs(10),
        },
        retention: None,
        exclusive: false,
    }
}

/// The texts of messages, with their speakers' blocks in order.
pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    blocks
        .map(|block| match block {
            Block::Text { text, .. } => text.clone(),
            Block::ToolUse { id, name, .. } => format!("{name}? {id}"),
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
                ..
            } => format!(
                "{tool_use_id}{} {content}",
                if *is_error { "!" } else { ":" }
            ),
            other => format!("{other:?}"),
        })
        .collect()
}

/// Why the run failed; `None` if it did not.
pub(crate) fn failed_with(state: &RunState) -> Option<RunErrorCode> {
    match state {
        RunState::Failed { error, .. } => Some(error.code),
        RunState::Queued
        | RunState::Running { .. }
        | RunState::Succeeded { .. }
        | RunState::Cancelled { .. } => None,
    }
}

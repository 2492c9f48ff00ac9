//! Why a model stopped, in the words of the servers.

use hango_domain::conversation::StopReason;
use hango_domain::model::{ModelFailureKind, Stop};

/// What a finish reason means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Finish {
    /// The model stopped.
    Stop(Stop),
    /// The answer is none; what to say of it.
    Failed(ModelFailureKind, &'static str),
    /// Nobody knows the word.
    Unknown,
}

/// What that word means. Gateways pass on the words of the servers behind them, in any letters, and
/// Gemini's shim puts a word of its own before them.
pub(crate) fn finish(reason: &str) -> Finish {
    let reason = reason.to_ascii_lowercase();
    let word = reason.rsplit(' ').next().unwrap_or_default();
    Finish::Stop(match word {
        "stop" | "end_turn" | "eos" | "eos_token" => Stop::Answer(StopReason::EndTurn),
        "stop_sequence" => Stop::Answer(StopReason::StopSequence),
        "length" | "max_tokens" | "max_output_tokens" => Stop::Answer(StopReason::MaxTokens),
        "tool_calls" | "tool_call" | "tool_use" => Stop::Answer(StopReason::ToolUse),
        "content_filter" | "safety" | "refusal" => Stop::Answer(StopReason::Refusal),
        "model_context_window_exceeded" | "context_length_exceeded" => Stop::ContextExceeded,
        "function_call" | "pause_turn" => Stop::Unsupported(word.to_owned()),
        "malformed_function_call" | "unexpected_tool_call" => {
            return Finish::Failed(ModelFailureKind::Protocol, "brought a call that is none");
        }
        "error" | "insufficient_system_resource" => {
            return Finish::Failed(ModelFailureKind::Unavailable, "broke the answer off");
        }
        _ => return Finish::Unknown,
    })
}

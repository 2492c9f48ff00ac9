//! A provider that plays a script: for tests, for demonstrations, and for whoever wants to see what his
//! own application does when a model misbehaves.
//!
//! [`ScriptedProvider::demo`] needs no script: it asks the clock and tells the time.
//! [`ScriptedProvider::from_toml`] plays one of this form:
//!
//! ```toml
//! word_delay_ms = 15                  # before each word that is streamed; 5 if absent
//!
//! [[rules]]                           # the first rule that matches a call answers it
//! text = "weather"                    # in what the user said last, in any case; absent: anything
//! turn = 0                            # answers since then; absent: any number
//! times = 2                           # how often the rule answers in this process; absent: always
//! steps = [                           # what is streamed, in this order
//!     { thinking = "They ask about the weather." },
//!     { text = "Let me look." },
//!     { wait_ms = 200 },
//!     { tool = { name = "get_time", input = { timezone = "Europe/Berlin" } } },
//!     { tool = { name = "get_time", arguments = '{"timezone": ' } },     # text that is no JSON
//! ]
//! stop_reason = "max_tokens"          # absent: tool_use with a tool among the steps, else end_turn
//! usage = { input_tokens = 9, output_tokens = 3 }                        # absent: estimated
//! cut_after = 4                       # the stream breaks off after so many deltas
//!
//! [[rules]]
//! steps = [{ fail = { kind = "unavailable", message = "overloaded", retry_after_ms = 500 } }]
//! ```
//!
//! * `{text}` in a text is what the user said last, `{result}` the results that came since, one a line.
//! * `kind` is one of `unavailable`, `auth`, `rejected`, `protocol`, `context_exceeded` and
//!   `unsupported_stop`. A failure that is the first step is one before the answer begins.
//! * A call that no rule matches is `rejected`.
//! * The same calls bring the same answers: ids count the tool calls of the conversation, and nothing
//!   depends on chance or time.

mod demo;
mod player;
mod provider;
mod scene;
mod script;

#[cfg(test)]
mod fixtures;

pub use provider::ScriptedProvider;
pub use script::{FailStep, FailureKind, Rule, Script, ScriptError, Step, TokenCounts, ToolStep};

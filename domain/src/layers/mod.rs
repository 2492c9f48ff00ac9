//! The layers, and the one place where their order is decided.

mod repair_tool_calls;
pub mod repeat_call;
mod settings;
pub mod todo;
mod tool_allowlist;

use std::sync::Arc;

pub use repair_tool_calls::RepairToolCalls;
pub use repeat_call::RepeatCall;
pub use settings::{SettingFault, SettingFaultKind, Settings};
pub use todo::TodoList;
pub use tool_allowlist::ToolAllowlist;

use serde_json::Map;

use crate::agent::AgentSettings;
use crate::chain::Chain;
use crate::memory::RunMemory;
use crate::middleware::{LayerTool, Middleware};

/// The names of all layers.
pub const NAMES: [&str; 4] = [
    RepairToolCalls::NAME,
    TodoList::NAME,
    RepeatCall::NAME,
    ToolAllowlist::NAME,
];

/// The layers of an agent with these settings, outermost first. A slot that nothing fills is left out.
/// `repeat_call_threshold` is the server's own, for agents that set none.
///
/// | slot | why it sits there |
/// | --- | --- |
/// | `Skills` | outermost: what it adds to prompt and tools is seen, and bounded, by all others |
/// | `Filesystem` | before whatever counts or shortens: large results are offloaded first |
/// | `Subagent` | with the layers that add tools, outside of those that only watch over calls |
/// | `Summarization` | behind `Filesystem`, so that it sees results that are offloaded already |
/// | `RepairToolCalls` | behind `Summarization`, so that it also repairs what a shortened history tore apart |
/// | `Todo` | its plan is part of the prompt, so it comes before the layers that cut the prompt for a cache |
/// | `RepeatCall` | outside of everything that asks or waits for a person: a blocked call asks nobody |
/// | `PromptCache` | its breakpoint closes the part of the prompt that stays the same |
/// | `Memory` | behind `PromptCache`: what changes lands behind the breakpoint and spoils no cache |
/// | `HumanInTheLoop` | behind all that rewrite a call, so that a person approves what will be executed |
/// | `ToolAllowlist` | innermost: no layer can bring back a tool that the agent may not call |
///
/// `RepairToolCalls` and `ToolAllowlist` are always in.
#[must_use]
pub fn stack(agent: &AgentSettings, repeat_call_threshold: u32) -> Chain {
    let (settings, _) = Settings::read(&agent.middleware, repeat_call_threshold);
    assemble(&settings, &agent.tools)
}

/// Every tool that some layer can add, in the order in which a model sees them.
#[must_use]
pub fn tools() -> Vec<LayerTool> {
    // Who sets nothing has every layer.
    let (settings, _) = Settings::read(&Map::new(), *RepeatCall::THRESHOLDS.start());
    let all = assemble(&settings, &[]);
    all.layer_tools(&RunMemory::default()).collect()
}

/// Whether some layer's tool bears that name.
#[must_use]
pub fn is_tool(name: &str) -> bool {
    tools().iter().any(|tool| tool.definition.name == name)
}

fn assemble(settings: &Settings, allowed: &[String]) -> Chain {
    let Settings { todo, repeat_call } = settings;
    let slots: [Option<Arc<dyn Middleware>>; 4] = [
        Some(Arc::new(RepairToolCalls)),
        todo.enabled.then(|| Arc::new(TodoList) as _),
        repeat_call
            .enabled
            .then(|| Arc::new(RepeatCall::new(repeat_call.threshold)) as _),
        Some(Arc::new(ToolAllowlist::new(allowed))),
    ];
    Chain::new(slots.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests;

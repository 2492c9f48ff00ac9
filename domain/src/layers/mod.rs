//! The layers, and the one place where their order is decided.

mod repair_tool_calls;
mod tool_allowlist;

use std::sync::Arc;

pub use repair_tool_calls::RepairToolCalls;
pub use tool_allowlist::ToolAllowlist;

use crate::agent::AgentSettings;
use crate::chain::Chain;

/// The layers of an agent with these settings, outermost first. A slot that nothing fills is left out.
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
pub fn stack(settings: &AgentSettings) -> Chain {
    Chain::new(vec![
        Arc::new(RepairToolCalls),
        Arc::new(ToolAllowlist::new(&settings.tools)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_are_in_this_order() {
        let settings = AgentSettings {
            provider: "scripted".to_owned(),
            model: "m".to_owned(),
            system_prompt: String::new(),
            tools: Vec::new(),
            max_tokens: None,
            temperature: None,
            limits: crate::agent::AgentLimits::default(),
            middleware: serde_json::Map::new(),
        };

        let names: Vec<_> = stack(&settings).names().collect();

        assert_eq!(names, ["repair_tool_calls", "tool_allowlist"]);
    }
}

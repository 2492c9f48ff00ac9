//! What a scripted model sees of a call.

use std::collections::HashMap;

use hango_domain::conversation::{Block, Message, Role};
use hango_domain::model::ModelCall;
use serde_json::Value;

/// The call, as far as a script looks at it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scene {
    /// What the user said last.
    pub(crate) text: String,
    /// How many answers the model gave since.
    pub(crate) turn: usize,
    /// The results that came since, in their order.
    pub(crate) results: Vec<Seen>,
    /// The tools that the model may call.
    pub(crate) tools: Vec<String>,
    /// How many tool calls the conversation has.
    pub(crate) calls: usize,
    /// A guess at the call's tokens.
    pub(crate) input_tokens: u64,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The tool; empty if its call is not in the conversation.
    pub(crate) tool: String,
    pub(crate) content: String,
    pub(crate) is_error: bool,
}

impl Scene {
    pub(crate) fn of(call: &ModelCall) -> Self {
        let messages = call.messages.as_slice();
        let said = |message: &Message| message.role == Role::User && text(message).is_some();
        let last = messages.iter().rposition(said);
        let since = &messages[last.map_or(0, |at| at + 1)..];
        let blocks = || messages.iter().flat_map(|message| &message.content);
        let names: HashMap<&str, &str> = blocks()
            .filter_map(|block| match block {
                Block::ToolUse { id, name, .. } => Some((id.as_str(), name.as_str())),
                _ => None,
            })
            .collect();
        Self {
            text: last.and_then(|at| text(&messages[at])).unwrap_or_default(),
            turn: since
                .iter()
                .filter(|message| message.role == Role::Assistant)
                .count(),
            results: results(since, &names),
            tools: call.tools.iter().map(|tool| tool.name.clone()).collect(),
            calls: blocks()
                .filter(|block| block.tool_use_id().is_some())
                .count(),
            input_tokens: input_tokens(call),
        }
    }

    /// A text of the script, with what it refers to.
    pub(crate) fn fill(&self, text: &str) -> String {
        let results: Vec<&str> = self
            .results
            .iter()
            .map(|seen| seen.content.as_str())
            .collect();
        // The user's words come last: a placeholder in them is only what he wrote.
        text.replace("{result}", &results.join("\n"))
            .replace("{text}", &self.text)
    }
}

/// A guess at how many tokens a text of so many bytes has.
pub(crate) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

fn text(message: &Message) -> Option<String> {
    let texts: Vec<&str> = message.content.iter().filter_map(Block::as_text).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn results(messages: &[Message], names: &HashMap<&str, &str>) -> Vec<Seen> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
            ..
        } => Some(Seen {
            tool: names
                .get(tool_use_id.as_str())
                .copied()
                .unwrap_or_default()
                .to_owned(),
            content: content.clone(),
            is_error: *is_error,
        }),
        _ => None,
    });
    results.collect()
}

fn input_tokens(call: &ModelCall) -> u64 {
    let system: usize = call.system.iter().map(|block| block.text.len()).sum();
    let tools = call
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len());
    let blocks = call.messages.iter().flat_map(|message| &message.content);
    let messages: usize = blocks.map(size).sum();
    // Each message costs a few tokens beside what it says.
    tokens(system + tools.sum::<usize>() + messages + 16 * call.messages.len())
}

fn size(block: &Block) -> usize {
    match block {
        Block::Text { text, .. } => text.len(),
        Block::ToolUse { name, input, .. } => {
            name.len() + Value::Object(input.clone()).to_string().len()
        }
        Block::ToolResult { content, .. } => content.len(),
        Block::Thinking { thinking, .. } => thinking.len(),
        Block::RedactedThinking { data, .. } => data.len(),
        Block::Provider(data) => data.data.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{assistant, call, result, tool_use, user};

    #[test]
    fn turns_and_results_are_counted_from_what_the_user_said_last() {
        let call = call([
            user(Block::text("before")),
            assistant([tool_use("call_1", "get_time")]),
            user(result("call_1", "then")),
            assistant([Block::text("It was then.")]),
            user(Block::text("now?")),
            assistant([tool_use("call_2", "get_time"), tool_use("call_3", "fetch")]),
            user(result("call_2", "noon")),
        ]);

        let scene = Scene::of(&call);

        assert_eq!(
            (scene.text.as_str(), scene.turn, scene.calls),
            ("now?", 1, 3)
        );
        let seen = Seen {
            tool: "get_time".to_owned(),
            content: "noon".to_owned(),
            is_error: false,
        };
        assert_eq!(scene.results, [seen]);
        assert_eq!(scene.fill("{text} {result}"), "now? noon");
    }

    #[test]
    fn a_conversation_without_a_word_of_the_user_is_a_scene_too() {
        let scene = Scene::of(&call([]));

        assert_eq!((scene.text.as_str(), scene.turn), ("", 0));
    }

    #[test]
    fn more_said_costs_more() {
        let cost = |text: &str| Scene::of(&call([user(Block::text(text))])).input_tokens;

        assert!(cost("a longer question than the other one") > cost("short"));
    }
}

mod orders;

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::agent::AgentLimits;
use crate::tool::schema;
use crate::tool::{Idempotency, Invocation, Registry, Tool, ToolDef, ToolResult};

#[test]
fn the_layers_are_in_this_order() {
    assert_eq!(
        names(&json!({}), &[]),
        ["repair_tool_calls", "todo", "repeat_call", "tool_allowlist"]
    );
}

#[test]
fn optional_layers_can_be_switched_off_and_the_others_cannot() {
    let off = json!({"enabled": false});
    let all =
        json!({"todo": off, "repeat_call": off, "repair_tool_calls": off, "tool_allowlist": off});

    assert_eq!(names(&all, &[]), ["repair_tool_calls", "tool_allowlist"]);
    assert_eq!(
        names(&json!({"todo": off}), &[]),
        ["repair_tool_calls", "repeat_call", "tool_allowlist"]
    );
}

#[test]
fn the_model_sees_registered_tools_first_and_then_the_layers_in_their_order() {
    let mut registry = Registry::new();
    for name in ["http_fetch", "get_time"] {
        let registered = registry.register(Arc::new(Named(name)));
        assert_eq!(registered, Ok(()));
    }

    let chain = stack(&agent(&json!({}), &[]), 3);
    let tools = chain.tools(&registry.view(&[]), &RunMemory::default());

    let tools: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["http_fetch", "get_time", "write_todos"]);
}

#[test]
fn every_layers_tool_is_known_by_its_own_name() {
    let tools: Vec<_> = tools()
        .into_iter()
        .map(|tool| tool.definition.name)
        .collect();

    assert_eq!(tools, ["write_todos"]);
    assert_eq!(tools.iter().collect::<BTreeSet<_>>().len(), tools.len());
    assert!(is_tool("write_todos") && !is_tool("get_time") && !is_tool("Write_todos"));
}

/// A tool of that name.
struct Named(&'static str);

#[async_trait]
impl Tool for Named {
    fn definition(&self) -> ToolDef {
        ToolDef {
            name: self.0.to_owned(),
            description: String::new(),
            parameters: schema::object([]),
        }
    }

    fn idempotency(&self) -> Idempotency {
        Idempotency::Safe
    }

    async fn execute(&self, _invocation: Invocation) -> ToolResult {
        ToolResult::ok("")
    }
}

fn names(middleware: &Value, tools: &[&str]) -> Vec<&'static str> {
    stack(&agent(middleware, tools), 3).names().collect()
}

fn agent(middleware: &Value, tools: &[&str]) -> AgentSettings {
    AgentSettings {
        provider: "scripted".to_owned(),
        model: "m".to_owned(),
        system_prompt: String::new(),
        tools: tools.iter().map(|&name| name.to_owned()).collect(),
        max_tokens: None,
        temperature: None,
        limits: AgentLimits::default(),
        middleware: middleware.as_object().cloned().unwrap_or_default(),
    }
}

//! The tools of a process, and what one agent may see of them.
//!
//! The registry is filled once, at start-up, and never changes; a [`View`] is the part of it that an
//! agent's allowlist leaves. Whatever goes wrong in a call is a result that the model reads: a tool
//! that is not there, and a tool that panics. How long a call may take is its caller's concern.

use std::sync::Arc;

use thiserror::Error;

use super::panic::{caught, panicked};
use super::{Idempotency, Invocation, Tool, ToolDef, ToolFailure, ToolResult};
use crate::layers;

/// Every tool of the process, in the order of their registration.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Registered>,
}

/// The registered tools that one agent may call.
#[derive(Clone, Default)]
pub struct View {
    tools: Vec<Registered>,
}

#[derive(Clone)]
struct Registered {
    definition: ToolDef,
    tool: Arc<dyn Tool>,
}

/// Why a tool is not registered.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum RegisterError {
    /// Another tool bears its name.
    #[error("there is already a tool {name:?}")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A layer's tool bears its name: an agent would have the one or the other, by its layers.
    #[error("{name:?} is the name of a tool that hango has built in")]
    OfALayer {
        /// The name.
        name: String,
    },
    /// Some provider would not take its name.
    #[error("{name:?} is not a tool's name: 1 to 64 letters, digits, '_' and '-'")]
    IllegalName {
        /// The name.
        name: String,
    },
}

/// The longest name of a tool.
pub(crate) const MAX_TOOL_NAME: usize = 64;

/// Whether a tool may bear that name: `^[A-Za-z0-9_-]{1,64}$`, what every provider takes.
#[must_use]
pub fn is_tool_name(name: &str) -> bool {
    (1..=MAX_TOOL_NAME).contains(&name.len()) && name.chars().all(is_name_char)
}

/// Whether providers take such a character of a tool's name.
pub(crate) const fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || char == '-'
}

impl Registry {
    /// A registry without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool behind the others. Its definition is asked for once, here.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; the registry is as it was.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let definition = tool.definition();
        let name = &definition.name;
        if !is_tool_name(name) {
            return Err(RegisterError::IllegalName { name: name.clone() });
        }
        if layers::is_tool(name) {
            return Err(RegisterError::OfALayer { name: name.clone() });
        }
        if self.get(name).is_some() {
            return Err(RegisterError::Duplicate { name: name.clone() });
        }
        self.tools.push(Registered { definition, tool });
        Ok(())
    }

    /// The tool of that exact name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        find(&self.tools, name)
    }

    /// The tools' names, in the order of their registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.definition.name.as_str())
    }

    /// The tools that `allowlist` names, in the order of their registration; all if it is empty. Names
    /// of tools that are not registered are passed over: they may be a layer's.
    #[must_use]
    pub fn view(&self, allowlist: &[String]) -> View {
        let allowed =
            |tool: &&Registered| allowlist.is_empty() || allowlist.contains(&tool.definition.name);
        View {
            tools: self.tools.iter().filter(allowed).cloned().collect(),
        }
    }
}

impl View {
    /// What a model sees of the tools, in the order of their registration.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDef> {
        let definitions = self.tools.iter().map(|tool| tool.definition.clone());
        definitions.collect()
    }

    /// The tool of that exact name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        find(&self.tools, name)
    }

    /// What a model is told of the tool of that exact name.
    #[must_use]
    pub fn description(&self, name: &str) -> Option<&str> {
        let mut tools = self.tools.iter().map(|tool| &tool.definition);
        let definition = tools.find(|definition| definition.name == name)?;
        Some(&definition.description)
    }

    /// Whether there is a tool of that exact name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// What may happen to a call of that tool that a crash left in doubt; `None` if there is no such
    /// tool.
    #[must_use]
    pub fn idempotency(&self, name: &str) -> Option<Idempotency> {
        self.get(name).map(|tool| tool.idempotency())
    }

    /// Executes a tool once. Dropping the future cancels the execution.
    ///
    /// A tool that is not there, and one that panics, bring an error result: the run goes on. The
    /// stack of a panic is logged by the process's panic hook.
    pub async fn call(&self, name: &str, invocation: Invocation) -> ToolResult {
        let Some(tool) = self.get(name) else {
            let text = format!("there is no tool {name:?}");
            return ToolResult::failed(ToolFailure::UnknownTool, text);
        };
        caught(|| tool.execute(invocation))
            .await
            .unwrap_or_else(|message| panicked(&message))
    }
}

fn find<'a>(tools: &'a [Registered], name: &str) -> Option<&'a Arc<dyn Tool>> {
    let tool = tools.iter().find(|tool| tool.definition.name == name)?;
    Some(&tool.tool)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures::executor::block_on;
    use serde_json::{Map, json};
    use uuid::Uuid;

    use super::*;
    use crate::RunId;
    use crate::tool::panic::Boxed;

    #[test]
    fn a_second_tool_of_the_same_name_is_refused() {
        let mut registry = registry(&["get_time"]);

        let refused = registry.register(Arc::new(Echo("get_time")));

        let name = "get_time".to_owned();
        assert_eq!(refused, Err(RegisterError::Duplicate { name }));
        assert_eq!(registry.names().collect::<Vec<_>>(), ["get_time"]);
    }

    #[test]
    fn a_tool_that_bears_the_name_of_a_layers_is_refused() {
        let refused = Registry::new().register(Arc::new(Echo("write_todos")));

        let name = "write_todos".to_owned();
        assert_eq!(refused, Err(RegisterError::OfALayer { name }));
    }

    #[test]
    fn a_name_that_a_provider_would_not_take_is_refused() {
        let long: &'static str = Box::leak("a".repeat(65).into_boxed_str());
        for name in ["", "get time", "get.time", "zeit_für", "get_time\n", long] {
            let refused = Registry::new().register(Arc::new(Echo(name)));

            let name = name.to_owned();
            assert_eq!(refused, Err(RegisterError::IllegalName { name }));
        }
        assert!(is_tool_name(&"a".repeat(64)));
        assert!(is_tool_name("Get-time_2"));
    }

    #[test]
    fn an_empty_allowlist_is_every_tool_in_the_order_of_registration() {
        let registry = registry(&["b", "a", "c"]);

        assert_eq!(names(&registry.view(&[])), ["b", "a", "c"]);
    }

    #[test]
    fn an_allowlist_leaves_the_tools_it_names_in_the_order_of_registration() {
        let registry = registry(&["b", "a", "c"]);

        let view = registry.view(&["c".to_owned(), "write_todos".to_owned(), "b".to_owned()]);

        assert_eq!(names(&view), ["b", "c"]);
        assert!(view.contains("b") && !view.contains("a") && !view.contains("B"));
        assert_eq!(view.idempotency("c"), Some(Idempotency::Safe));
        assert_eq!(view.idempotency("a"), None);
    }

    #[test]
    fn a_call_reaches_the_tool_of_its_name() {
        let view = registry(&["b", "a"]).view(&[]);

        let result = block_on(view.call("a", invocation()));

        assert_eq!(result, ToolResult::ok(r#"a {"x":1}"#));
    }

    #[test]
    fn a_tool_that_is_not_in_the_view_brings_an_error_result() {
        let view = registry(&["b", "a"]).view(&["b".to_owned()]);

        let result = block_on(view.call("a", invocation()));

        let expected = ToolResult::failed(ToolFailure::UnknownTool, r#"there is no tool "a""#);
        assert_eq!(result, expected);
    }

    #[test]
    fn a_tool_that_panics_brings_an_error_result_with_the_message() {
        for at_once in [true, false] {
            let mut registry = Registry::new();
            registry
                .register(Arc::new(Panics { at_once }))
                .expect("a legal name");

            let result = block_on(registry.view(&[]).call("panics", invocation()));

            let expected = ToolResult::failed(ToolFailure::Panic, "the tool panicked: boom");
            assert_eq!(result, expected);
        }
    }

    /// Answers with its name and its arguments.
    struct Echo(&'static str);

    #[async_trait]
    impl Tool for Echo {
        fn definition(&self) -> ToolDef {
            definition(self.0)
        }

        fn idempotency(&self) -> Idempotency {
            Idempotency::Safe
        }

        async fn execute(&self, invocation: Invocation) -> ToolResult {
            ToolResult::ok(format!("{} {}", self.0, json!(invocation.input)))
        }
    }

    /// Panics before there is a future, or in its poll.
    struct Panics {
        at_once: bool,
    }

    impl Tool for Panics {
        fn definition(&self) -> ToolDef {
            definition("panics")
        }

        fn idempotency(&self) -> Idempotency {
            Idempotency::Safe
        }

        fn execute<'a, 'b>(&'a self, _: Invocation) -> Boxed<'b, ToolResult>
        where
            'a: 'b,
            Self: 'b,
        {
            assert!(!self.at_once, "boom");
            Box::pin(async { panic!("boom") })
        }
    }

    fn registry(names: &[&'static str]) -> Registry {
        let mut registry = Registry::new();
        for name in names {
            let registered = registry.register(Arc::new(Echo(name)));
            assert_eq!(registered, Ok(()));
        }
        registry
    }

    fn names(view: &View) -> Vec<String> {
        let definitions = view.definitions().into_iter();
        definitions.map(|tool| tool.name).collect()
    }

    fn definition(name: &str) -> ToolDef {
        ToolDef {
            name: name.to_owned(),
            description: String::new(),
            parameters: crate::tool::schema::object([]),
        }
    }

    fn invocation() -> Invocation {
        Invocation {
            input: Map::from_iter([("x".to_owned(), 1.into())]),
            run: RunId(Uuid::nil()),
            tool_use_id: "call_1".to_owned(),
            idempotency_key: "key".to_owned(),
            traceparent: String::new(),
        }
    }
}

//! The guide's tool, and that it does what every tool must.

// region: tool
use std::sync::Arc;

use async_trait::async_trait;
use hango_domain::tool::schema;
use hango_ports::tool::{Idempotency, Invocation, Tool, ToolDef, ToolResult};
use serde::Deserialize;
use serde_json::Value;

const POLICY: &str =
    "Tells where an order is. Use it whenever the user asks about an order; never guess.";

/// What the team's own code knows of an order, `None` if there is none.
pub(crate) type Find = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Tells where an order is.
///
/// [`Idempotency::Safe`]: it reads, and a later reading is as true as an earlier one.
pub(crate) struct LookUpOrder {
    find: Arc<Find>,
}

#[derive(Deserialize)]
struct Arguments {
    order_number: String,
}

impl LookUpOrder {
    pub(crate) fn new(find: Arc<Find>) -> Self {
        Self { find }
    }
}

#[async_trait]
impl Tool for LookUpOrder {
    fn definition(&self) -> ToolDef {
        ToolDef {
            name: "look_up_order".to_owned(),
            description: POLICY.to_owned(),
            parameters: schema::object([schema::field(
                "order_number",
                "string",
                "The seven digits on the invoice.",
                true,
            )]),
        }
    }

    fn idempotency(&self) -> Idempotency {
        Idempotency::Safe
    }

    async fn execute(&self, invocation: Invocation) -> ToolResult {
        // Whatever is wrong is told to the model, which can mend its call.
        let number = match serde_json::from_value(Value::Object(invocation.input)) {
            Ok(Arguments { order_number }) => order_number,
            Err(error) => return ToolResult::error(format!("order_number: {error}")),
        };
        match (self.find)(number.trim()) {
            Some(place) => ToolResult::ok(place),
            None => ToolResult::error("there is no such order; ask the user for the number"),
        }
    }
}
// endregion: tool

/// The tool of the checks.
mod checked {
    // region: tool-tests
    use hango_conformance::tool::Sample;
    use serde_json::{Map, json};

    use super::*;

    async fn tool() -> (Sample, ()) {
        let find = |number: &str| (number == "1234567").then(|| "in the harbour".to_owned());
        let sample = Sample {
            tool: Arc::new(LookUpOrder::new(Arc::new(find))),
            good: Map::from_iter([("order_number".to_owned(), json!("1234567"))]),
        };
        (sample, ())
    }

    hango_conformance::tool_tests!(tool);
    // endregion: tool-tests
}

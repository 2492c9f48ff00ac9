//! The team's tool.

use async_trait::async_trait;
use hango_domain::tool::schema;
use hango_ports::tool::{Idempotency, Invocation, Tool, ToolDef, ToolResult};

/// Tells when the shop is open.
///
/// [`Idempotency::Safe`]: it reads what never changes.
pub(crate) struct OpeningHours;

#[async_trait]
impl Tool for OpeningHours {
    fn definition(&self) -> ToolDef {
        ToolDef {
            name: "opening_hours".to_owned(),
            description: "Tells when the shop is open. Never guess.".to_owned(),
            parameters: schema::object([]),
        }
    }

    fn idempotency(&self) -> Idempotency {
        Idempotency::Safe
    }

    async fn execute(&self, _invocation: Invocation) -> ToolResult {
        ToolResult::ok("from nine to five")
    }
}

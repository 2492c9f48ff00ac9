//! Tools that an operator's adapters bring. The trait is the domain's, which holds tools in its
//! registry; it is a port all the same, and this is its place among them.

#[cfg(feature = "mocks")]
pub use hango_domain::tool::MockTool;
pub use hango_domain::tool::{Idempotency, Invocation, Tool, ToolDef, ToolResult};

//! The tools that hango brings: the clock, what pages say, and what an operator's own HTTP services do.
//!
//! A tool never fails in Rust's sense: whatever goes wrong is an error result, written for the model to
//! read, so that it can mend its call or tell the user. No error names the value of an operator's header, or
//! where something is that a model did not name itself.
//!
//! Two ways lead out. [`outbound`] is for URLs that a model chose, and trusts none of them; [`HttpTool`] calls
//! the one URL that its operator configured.

mod arguments;
mod get_time;
mod http_fetch;
mod http_tool;
pub mod outbound;

pub use get_time::GetTime;
pub use http_fetch::HttpFetch;
pub use http_tool::{HttpTool, HttpToolError, HttpToolSettings};

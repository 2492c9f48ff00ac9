//! The tools that hango brings: the clock, and what an operator's own HTTP services do.
//!
//! A tool never fails in Rust's sense: whatever goes wrong is an error result, written for the model to
//! read, so that it can mend its call or tell the user. No error names the value of an operator's header.

mod arguments;
mod get_time;
mod http_tool;

pub use get_time::GetTime;
pub use http_tool::{HttpTool, HttpToolError, HttpToolSettings};

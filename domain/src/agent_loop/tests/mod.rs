//! The loop: each way through a run by an example, and that stopping anywhere changes nothing.
//!
//! Every example and every property saves what the loop wants saved in a [`store`] of the domain's own
//! rules, so that a change which a real store would refuse fails the test.

mod anywhere;
mod bench;
mod player;
mod resumption;
mod script;
mod standing;
mod stops;
mod store;
mod tries;
mod turns;
mod unexecuted;

use super::*;
use crate::model::{ModelFailure, ModelReply};
use crate::tool::ToolResult;
use bench::*;
use store::Store;

//! What the e2e tests have too.

#[path = "../../e2e/support/gate.rs"]
#[expect(dead_code, reason = "the e2e tests use more of it")]
mod gate;
#[path = "../../e2e/support/messages.rs"]
pub(crate) mod messages;
#[path = "../../e2e/support/reply.rs"]
#[expect(dead_code, reason = "the e2e tests use more of it")]
pub(crate) mod reply;
#[path = "../../e2e/support/strict.rs"]
pub(crate) mod strict;

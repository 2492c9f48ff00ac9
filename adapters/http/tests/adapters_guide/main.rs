//! The examples of `docs/adapters.md`, compiled, held to what every adapter must do, and executed; the
//! guide shows the marked regions, and a test compares the two.
//!
//! They stand here because this is the crate, beside the binary, that reaches engine and API: a team's
//! own server is put together of nothing else.

mod counts;
mod gateway;
mod orders;
mod server;
mod shown;
mod whole;

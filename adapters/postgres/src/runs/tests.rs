//! What the ports do not show of the statements: what each holds by itself, what it reads, and what becomes
//! of one whose answer is lost.

pub(crate) mod fence;
mod plans;
mod repeats;

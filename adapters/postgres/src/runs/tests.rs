//! What the ports do not show of the statements.

mod repeats;

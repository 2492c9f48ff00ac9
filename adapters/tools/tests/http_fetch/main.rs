//! `http_fetch` against everything that somebody who chooses its URLs may think of.
//!
//! Tests are named by the rows of a table of attacks (`s01`, `s02` …): `rows` has those that are about the
//! URL alone, the other files those about names, redirects, answers and certificates. `everywhere` asks for
//! every row again in a network where each address of the world is the test's own, and counts there what was
//! connected to.

mod answers;
mod certificates;
mod everywhere;
mod names;
mod redirects;
mod rows;
mod support;
mod tool;

//! The binary as its users have it: the real process, over HTTP, with signals, and killed.
//!
//! The truth is kept outside of hango: the provider and the tools' services have logs of their own, and
//! `support::history` compares them with what hango says after every test.

mod anthropic;
mod api_smoke;
mod cancel;
mod command_line;
mod crash_in_model;
mod crash_in_tools;
mod crash_storm;
mod crowd;
mod database_down;
mod drain;
mod explain;
mod hostile;
mod http_fetch;
mod idempotency;
mod layers;
mod limits;
mod matrix;
mod metrics;
mod people;
mod pooler;
mod quickstart;
mod replicas;
mod retention;
mod rolling_deploy;
mod rows;
mod scripted;
mod store_file;
mod support;
mod traces;
mod zombie;

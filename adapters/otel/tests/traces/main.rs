//! The traces of runs that the real engine executes, as an exporter gets them.

mod content;
mod failures;
mod hierarchy;
mod lost;
mod support;

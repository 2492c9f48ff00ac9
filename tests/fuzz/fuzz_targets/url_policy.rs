//! Any text as a URL: what the policy admits is listed, public, and cannot be read in two ways.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../adapters/tools/tests/url_policy/property.rs"]
mod property;

fuzz_target!(|text: &str| property::holds(text));

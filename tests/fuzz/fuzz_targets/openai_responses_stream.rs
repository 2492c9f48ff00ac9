//! Any bytes as an answer of a server that speaks the Responses API.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod stream;

fuzz_target!(|bytes: &[u8]| stream::holds(bytes, hango_openai::testing::responses));

//! Any bytes as an answer of a server that speaks chat completions, an orderly one and one that writes
//! calls and thoughts into the text.

#![no_main]

use hango_openai::Quirk;
use hango_openai::testing::chat;
use libfuzzer_sys::fuzz_target;

mod stream;

fuzz_target!(|bytes: &[u8]| {
    stream::holds(bytes, || chat(&[]));
    stream::holds(bytes, || chat(&[Quirk::CallsInText, Quirk::ThinkTags]));
});

//! Any text as JSON: it is read as `serde_json` reads it once its surrogates are mended, and never into
//! more memory than was said.

#![no_main]

use hango_domain::json::{Unreadable, read, text, weight};
use hango_domain::text::mend_json;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|json: &str| {
    let theirs: Option<Value> = serde_json::from_str(&mend_json(json)).ok();
    let ours = read(json, usize::MAX).ok();

    assert_eq!(ours, theirs);
    let Some(value) = ours else { return };
    assert_eq!(text(&value), value.to_string());
    let weight = weight(&value);
    // What is said twice in an object weighs twice.
    match read(json, json.len() + weight) {
        Ok(again) => assert_eq!(again, value),
        Err(unreadable) => assert_eq!(unreadable, Unreadable::TooLarge(json.len() + weight)),
    }
    assert_eq!(read(json, weight - 1), Err(Unreadable::TooLarge(weight - 1)));
});

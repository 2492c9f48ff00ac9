//! Text that any store can keep, of a length that any model can read.
//!
//! * U+0000 is refused by one store and kept by another: it becomes U+FFFD at their border, on decoded
//!   strings, and the count is noted. What an API client sends is refused instead, so this is for text
//!   of models and tools.
//! * Lone surrogates can't be in a Rust string. They come as escapes in JSON text, where a strict parser
//!   refuses the whole document: whoever decodes such text passes it through [`mend_json`] first.
//! * Output of a tool that is too long is [cut](truncate).

use std::borrow::Cow;
use std::mem;

use serde_json::{Map, Value};

use crate::conversation::{Block, ProviderData};

/// Stands for a character that can't be kept.
const REPLACEMENT: &str = "\u{fffd}";

/// `text` with U+FFFD for each U+0000.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', REPLACEMENT))
    } else {
        Cow::Borrowed(text)
    }
}

/// Cleans every string in `value`, keys included, and tells how many characters it replaced.
///
/// Of two keys that become the same one, the later one's value stays.
pub fn clean_value(value: &mut Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => clean_string(text),
        Value::Array(values) => values.iter_mut().map(clean_value).sum(),
        Value::Object(map) => clean_map(map),
    }
}

/// Cleans every string in `blocks` and tells how many characters it replaced.
pub fn clean_blocks(blocks: &mut [Block]) -> usize {
    blocks.iter_mut().map(clean_block).sum()
}

/// At most `max_bytes` of `text`, cut between two characters; the end tells how much is missing.
///
/// If not even that fits into `max_bytes`, it is all that is left.
#[must_use]
pub fn truncate(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let total = text.len();
    let note = |missing: usize| format!("\n[{missing} of {total} bytes left out]");
    // No other number of missing bytes has a longer note.
    let room = max_bytes.saturating_sub(note(total).len());
    let kept = &text[..text.floor_char_boundary(room)];
    Cow::Owned(format!("{kept}{}", note(total - kept.len())))
}

/// `json` with the escape of U+FFFD for each escape of half a surrogate pair, so that it can be parsed.
///
/// `json` is JSON text; if it is not, neither is what comes back.
#[must_use]
pub fn mend_json(json: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        at += found;
        match (escaped_unit(json, at), escaped_unit(json, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                // What takes an escape's place is as long.
                mended.reserve_exact(json.len() - mended.len());
                mended.push_str(&json[copied..at]);
                mended.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            (Some(_), _) => at += 6,
            // The backslash and the character that it escapes.
            (None, _) => at = json.ceil_char_boundary(at + 2),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[copied..]);
    Cow::Owned(mended)
}

/// The UTF-16 unit whose escape, `\uXXXX`, begins at byte `at`.
fn escaped_unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

pub(crate) fn clean_string(text: &mut String) -> usize {
    let found = text.matches('\0').count();
    if found > 0 {
        *text = text.replace('\0', REPLACEMENT);
    }
    found
}

pub(crate) fn clean_map(map: &mut Map<String, Value>) -> usize {
    let values: usize = map.values_mut().map(clean_value).sum();
    if !map.keys().any(|key| key.contains('\0')) {
        return values;
    }
    let mut keys = 0;
    *map = mem::take(map)
        .into_iter()
        .map(|(mut key, value)| {
            keys += clean_string(&mut key);
            (key, value)
        })
        .collect();
    keys + values
}

fn clean_block(block: &mut Block) -> usize {
    match block {
        Block::Text {
            text,
            provider_data,
        } => clean_string(text) + provider_data.as_mut().map_or(0, clean_data),
        Block::ToolUse {
            id,
            name,
            input,
            provider_data,
        } => {
            clean_string(id)
                + clean_string(name)
                + clean_map(input)
                + provider_data.as_mut().map_or(0, clean_data)
        }
        Block::ToolResult {
            tool_use_id,
            content,
            for_user,
            is_error: _,
        } => {
            clean_string(tool_use_id)
                + clean_string(content)
                + for_user.as_mut().map_or(0, clean_string)
        }
        Block::Thinking {
            thinking,
            signature,
            provider_data,
        } => {
            clean_string(thinking)
                + clean_string(signature)
                + provider_data.as_mut().map_or(0, clean_data)
        }
        Block::RedactedThinking {
            data,
            provider_data,
        } => clean_string(data) + provider_data.as_mut().map_or(0, clean_data),
        Block::Provider(data) => clean_data(data),
    }
}

fn clean_data(data: &mut ProviderData) -> usize {
    clean_string(&mut data.provider) + clean_string(&mut data.model) + clean_value(&mut data.data)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn text_without_the_null_character_is_not_copied() {
        assert!(matches!(clean("plain \u{1}"), Cow::Borrowed(_)));
        assert_eq!(clean("a\0b\0"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn values_are_cleaned_in_depth_and_keys_too() {
        let mut value = json!({"a\0": [1, null, {"b": "\0\0"}], "c": "plain"});

        assert_eq!(clean_value(&mut value), 3);
        assert_eq!(
            value,
            json!({"a\u{fffd}": [1, null, {"b": "\u{fffd}\u{fffd}"}], "c": "plain"})
        );
    }

    #[test]
    fn every_string_of_a_block_is_cleaned() {
        let data = || ProviderData {
            provider: "\0".to_owned(),
            model: "\0".to_owned(),
            data: json!("\0"),
        };
        let null = || "\0".to_owned();
        let mut blocks = [
            Block::Text {
                text: null(),
                provider_data: Some(data()),
            },
            Block::ToolUse {
                id: null(),
                name: null(),
                input: Map::from_iter([(null(), json!("\0"))]),
                provider_data: Some(data()),
            },
            Block::ToolResult {
                tool_use_id: null(),
                content: null(),
                for_user: Some(null()),
                is_error: false,
            },
            Block::Thinking {
                thinking: null(),
                signature: null(),
                provider_data: Some(data()),
            },
            Block::RedactedThinking {
                data: null(),
                provider_data: Some(data()),
            },
            Block::Provider(data()),
        ];

        assert_eq!(clean_blocks(&mut blocks), 4 + 7 + 3 + 5 + 4 + 3);
        assert_eq!(clean_blocks(&mut blocks), 0);
    }

    #[test]
    fn what_is_cut_off_is_told() {
        let text = "é".repeat(50);

        assert_eq!(truncate(&text, 100), text);
        let cut = format!("{}\n[32 of 100 bytes left out]", "é".repeat(34));
        assert_eq!(truncate(&text, 96), cut);
        assert_eq!(truncate(&text, 1), "\n[100 of 100 bytes left out]");
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_a_whole_one_is_kept() {
        let mend = |json: &str| mend_json(json).into_owned();

        assert_eq!(mend(r#""\ud83d""#), r#""\ufffd""#);
        assert_eq!(mend(r#""\ude00\ud83d\u0041""#), r#""\ufffd\ufffd\u0041""#);
        assert_eq!(mend(r#""\ud83d\ude00""#), r#""\ud83d\ude00""#);
        assert_eq!(mend(r#""\\ud83d \"é\"""#), r#""\\ud83d \"é\"""#);
        assert_eq!(mend("\\"), "\\");
        assert_eq!(mend("\\é"), "\\é");
    }

    proptest! {
        #[test]
        fn whatever_is_cut_is_short_enough_and_its_beginning_is_kept(
            text in "[a-zé😀]{0,200}",
            max in 40..200_usize,
        ) {
            let cut = truncate(&text, max);
            let kept = cut.split('\n').next().unwrap_or_default();

            prop_assert!(cut.len() <= max);
            prop_assert!(text.starts_with(kept));
            prop_assert_eq!(truncate(&cut, max), cut.as_ref());
        }

        #[test]
        fn any_escapes_can_be_parsed_once_they_are_mended(units in prop::collection::vec(
            prop_oneof![any::<u16>(), 0xd7fe..0xe002_u16],
            0..12,
        )) {
            let mut json = String::from("\"");
            for unit in &units {
                write!(json, "\\u{unit:04x}").map_err(|error| TestCaseError::fail(error.to_string()))?;
            }
            json.push('"');

            let text: Result<String, _> = serde_json::from_str(&mend_json(&json));

            prop_assert_eq!(text.ok(), Some(String::from_utf16_lossy(&units)));
        }

        #[test]
        fn valid_json_is_never_changed(text in any::<String>()) {
            let json = Value::String(text).to_string();
            prop_assert_eq!(mend_json(&json), json.as_str());
        }
    }
}

//! Whole numbers that cannot be kept: JSON has them of any length, and of one that does not fit into 64 bits
//! only the first digits would be left. What is read does not tell that any more, so what was sent is looked
//! at.

use std::collections::BTreeMap;

use hango_application::use_cases::{Fault, FaultCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::fields::{MOST_POINTERS, Path};

/// Numbers of so many digits fit in any case.
const FITTING: usize = 18;

/// Finds the whole numbers of a document that have more than 64 bits: the first ones, where listing them all
/// would take more than the document itself may. It was read already, so it is JSON and not deep.
pub(crate) fn find_wide_numbers(document: &[u8]) -> Vec<Fault> {
    let mut found = WideNumbers {
        faults: Vec::new(),
        room: MOST_POINTERS,
    };
    // Hardly a document has so many digits in a row, and others need not be taken apart.
    let mut digits = document.split(|c| !c.is_ascii_digit());
    if digits.any(|row| row.len() > FITTING)
        && let Ok(whole) = serde_json::from_slice::<&RawValue>(document)
    {
        found.look_at(whole.get(), &Path::Document);
    }
    found.faults
}

struct WideNumbers {
    faults: Vec<Fault>,
    /// How many bytes of pointers there may be.
    room: usize,
}

impl WideNumbers {
    fn look_at(&mut self, json: &str, path: &Path<'_>) {
        match json.as_bytes().first() {
            Some(b'[') => {
                for (at, item) in parts::<Vec<&RawValue>>(json).into_iter().enumerate() {
                    self.look_at(item.get(), &Path::Item(path, at));
                }
            }
            Some(b'{') => {
                for (name, field) in parts::<BTreeMap<String, &RawValue>>(json) {
                    self.look_at(field.get(), &Path::Field(path, &name));
                }
            }
            Some(b'-' | b'0'..=b'9') if self.room > 0 && is_wide(json) => {
                let pointer = path.to_string();
                self.room = self.room.saturating_sub(pointer.len());
                let detail = "a whole number has at most 64 bits; a longer one can be sent as text";
                let fault = Fault::new(pointer, FaultCode::OutOfRange, detail);
                self.faults.push(fault);
            }
            Some(_) | None => {}
        }
    }
}

/// What a list or an object holds. It was read before, so it can be read again.
fn parts<'a, T: Deserialize<'a> + Default>(json: &'a str) -> T {
    serde_json::from_str(json).unwrap_or_default()
}

fn is_wide(number: &str) -> bool {
    let is_whole = !number.contains(['.', 'e', 'E']);
    is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str) -> Vec<String> {
        let faults = find_wide_numbers(document.as_bytes()).into_iter();
        faults.map(|fault| fault.pointer).collect()
    }

    #[test]
    fn a_number_is_too_wide_if_reading_it_would_take_digits_away() {
        for (number, wide) in [
            ("18446744073709551615", false),
            ("18446744073709551616", true),
            ("-9223372036854775808", false),
            ("-9223372036854775809", true),
            ("-18446744073709551615", true),
            ("0.12345678901234567890", false),
            ("12345678901234567890.5", false),
            ("123456789012345678901e2", false),
            ("\"18446744073709551616\"", false),
            ("\"\\\"18446744073709551616\"", false),
        ] {
            assert_eq!(found(number) == [""], wide, "{number}");
        }
    }

    #[test]
    fn each_is_named_by_its_place() {
        let wide = "9".repeat(30);
        let document =
            format!(r#"{{"a/b": [1, {wide}, {{"c": -{wide}}}], "{wide}": "{wide}", "d": {wide}}}"#);

        assert_eq!(found(&document), ["/a~1b/1", "/a~1b/2/c", "/d"]);
    }

    #[test]
    fn of_very_many_the_first_ones_are_named() {
        let wide = vec!["9".repeat(20); 10_000].join(",");
        let pointers = found(&format!(r#"{{"{}": [{wide}]}}"#, "n".repeat(100)));

        let bytes: usize = pointers.iter().map(String::len).sum();
        assert!(
            (MOST_POINTERS..MOST_POINTERS + 200).contains(&bytes),
            "{bytes}"
        );
    }
}

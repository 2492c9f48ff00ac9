//! One spelling for each JSON value, so that values can be compared by their text.
//!
//! The form is that of RFC 8785: no white space, object keys in the order of their UTF-16 units, strings
//! and numbers as ECMAScript writes them. With one exception: a whole number that an integer of 64 bits
//! holds keeps all its digits, where the RFC would round it to what a double holds. So two ids that
//! differ in their last digit stay two, and `1`, `1.0` and `1e0` are one.

use std::fmt::Write;

use serde_json::{Map, Number, Value};

/// The canonical text of a value.
#[must_use]
pub fn value(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

/// The canonical text of an object.
#[must_use]
pub fn object(fields: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_object(fields, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => write_number(number, text),
        Value::Array(items) => write_array(items, text),
        Value::Object(fields) => write_object(fields, text),
        // What serde_json writes of these is the RFC's form.
        Value::Null | Value::Bool(_) | Value::String(_) => push(text, value),
    }
}

fn write_array(items: &[Value], text: &mut String) {
    text.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        write_value(item, text);
    }
    text.push(']');
}

fn write_object(fields: &Map<String, Value>, text: &mut String) {
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    text.push('{');
    for (at, (name, value)) in fields.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        push(text, Value::from(name.as_str()));
        text.push(':');
        write_value(value, text);
    }
    text.push('}');
}

fn write_number(number: &Number, text: &mut String) {
    match number.as_f64() {
        Some(double) if number.is_f64() => match whole(double) {
            Some(whole) => push(text, whole),
            None => write_double(double, text),
        },
        Some(_) | None => push(text, number),
    }
}

/// The whole number that a double is, where an integer of 64 bits, signed or not, holds it.
fn whole(double: f64) -> Option<i128> {
    const BEYOND_U64: f64 = 18_446_744_073_709_551_616.0;
    const LEAST_I64: f64 = -9_223_372_036_854_775_808.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole, and far within the range"
    )]
    let whole = double as i128;
    ((LEAST_I64..BEYOND_U64).contains(&double) && double.fract() == 0.0).then_some(whole)
}

/// A double as ECMAScript's `Number::toString` writes it.
fn write_double(double: f64, text: &mut String) {
    // The shortest digits that read back as the same double, such as `-1.25e-7`.
    let shortest = format!("{double:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.trim_start_matches('-').replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if double.is_sign_negative() {
        text.push('-');
    }
    match (exponent, usize::try_from(exponent)) {
        (..=20, Ok(before)) if digits.len() > before + 1 => {
            let (whole, fraction) = digits.split_at(before + 1);
            push(text, format_args!("{whole}.{fraction}"));
        }
        (..=20, Ok(before)) => push(text, format_args!("{digits:0<width$}", width = before + 1)),
        (-6..=-1, Err(_)) => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            push(text, format_args!("0.{zeros}{digits}"));
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            push(text, format_args!("{first}{point}{rest}e{exponent:+}"));
        }
    }
}

fn push(text: &mut String, what: impl std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = write!(text, "{what}");
}

#[cfg(test)]
mod tests;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;

/// More than any text of these tests weighs.
const PLENTY: usize = 1 << 20;

fn string(json: &str) -> Option<Value> {
    read(json, PLENTY).ok()
}

#[test]
fn half_a_surrogate_pair_is_replaced_and_a_whole_one_is_read() {
    for (json, text) in [
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\ude00\ud83d\u0041""#, "\u{fffd}\u{fffd}A"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
        (r#""\ud83d\ude00""#, "\u{1f600}"),
        (r#""\\ud83d \"é\"""#, "\\ud83d \"é\""),
        (r#""\uD83Dé""#, "\u{fffd}é"),
    ] {
        assert_eq!(string(json), Some(json!(text)), "{json}");
    }
    assert_eq!(string(r#"{"\ud83d": 1}"#), Some(json!({"\u{fffd}": 1})));
}

#[test]
fn what_is_not_json_is_not_read() {
    for text in [
        "",
        " ",
        "{",
        "[1,",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":1,}",
        "\"",
        "\"\\\"",
        "\"\\é\"",
        "\"\\u12\"",
        "\"\\u+123\"",
        "\"\n\"",
        "tru",
        "nul",
        "01",
        "1.",
        "-",
        "+1",
        "1 2",
        "1e999",
        "\u{a0}1",
        "[1}",
        "{\"a\":1]",
    ] {
        assert_eq!(read(text, PLENTY), Err(Unreadable::NotJson), "{text}");
    }
}

#[test]
fn values_are_read_as_deeply_as_others_read_them() {
    let nested = |depth: usize| "[".repeat(depth) + "1" + &"]".repeat(depth);

    for depth in [126, 127, 128, 129, 100_000] {
        let theirs: Option<Value> = serde_json::from_str(&nested(depth)).ok();
        assert_eq!(read(&nested(depth), 1 << 30).ok(), theirs, "{depth}");
    }
}

#[test]
fn what_weighs_more_than_the_budget_is_not_read() {
    for (json, values, objects) in [
        ("[1,1,1,1]", 5, 0),
        (r#"{"a":{},"b":[[]]}"#, 4, 2),
        (r#""\u0041BC""#, 1, 0),
        ("null", 1, 0),
    ] {
        let value = read(json, PLENTY).expect("JSON");
        let enough = json.len() + values * VALUE + objects * OBJECT;

        assert!(weight(&value) <= enough, "{json}");
        assert_eq!(read(json, enough), Ok(value), "{json}");
        let less = enough - 1;
        assert_eq!(read(json, less), Err(Unreadable::TooLarge(less)), "{json}");
    }
}

#[test]
fn a_value_weighs_at_least_what_it_takes() {
    assert!(VALUE >= 3 * size_of::<Value>(), "room for a list to double");
    let leaf = 11 * (size_of::<String>() + size_of::<Value>());
    assert!(OBJECT >= leaf + 16, "a map's first node");
    // A node of a map is half full at least.
    assert!(VALUE * 6 >= leaf, "a member of a map");
}

#[test]
fn a_value_is_written_in_no_more_memory_than_it_needs() {
    let value = json!({"a": ["\u{1}é", -1.5, null]});

    let text = text(&value);

    assert_eq!(text, value.to_string());
    assert_eq!(text.capacity(), text.len());
}

/// JSON, nearly.
fn any_text() -> impl Strategy<Value = String> {
    let token = select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\n\\u00e9\"",
        "\"\\u12g4\"",
        "\"é",
        "\"",
        "\\",
        "1",
        "-0.5e3",
        "12345678901234567890123",
        "0.1000000000000000055",
        "true",
        "null",
        " ",
        "\n",
        "e",
        "{}",
        "[]",
        "\"b\":",
    ]);
    prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let members = prop::collection::btree_map(any::<String>(), inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_others_read_is_read_alike_and_nothing_else(text in any_text()) {
        let theirs: Option<Value> = serde_json::from_str(&text).ok();

        prop_assert_eq!(read(&text, PLENTY).ok(), theirs);
    }

    #[test]
    fn every_value_is_read_as_it_was_written(value in any_value()) {
        let compact = value.to_string();
        let spacious = serde_json::to_string_pretty(&value).expect("JSON");

        prop_assert_eq!(string(&compact), Some(value.clone()));
        prop_assert_eq!(string(&spacious), Some(value));
    }

    #[test]
    fn any_escapes_are_read(units in prop::collection::vec(
        prop_oneof![any::<u16>(), 0xd7fe..0xe002_u16],
        0..12,
    )) {
        let mut json = String::from("\"");
        for unit in &units {
            write!(json, "\\u{unit:04x}").map_err(|error| TestCaseError::fail(error.to_string()))?;
        }
        json.push('"');

        prop_assert_eq!(string(&json), Some(json!(String::from_utf16_lossy(&units))));
    }
}

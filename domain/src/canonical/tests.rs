use proptest::prelude::*;
use serde_json::json;

use super::*;

fn canonical(text: &str) -> String {
    value(&serde_json::from_str(text).expect("JSON"))
}

#[test]
fn white_space_and_the_order_of_keys_do_not_matter() {
    let one = canonical(r#" { "b" : [ 1 , 2 ], "a" : { "d":null, "c":true } } "#);

    assert_eq!(one, r#"{"a":{"c":true,"d":null},"b":[1,2]}"#);
}

#[test]
fn how_a_number_is_spelled_does_not_matter() {
    for (spellings, expected) in [
        (["1", "1.0", "1e0", "10e-1"], "1"),
        (["0", "-0", "0.0", "-0.0"], "0"),
        (["-5", "-5.0", "-50E-1", "-0.5e1"], "-5"),
        (["1500", "1.5e3", "1500.0", "15E2"], "1500"),
        (["0.5", "5e-1", "0.50", "50e-2"], "0.5"),
    ] {
        for spelled in spellings {
            assert_eq!(canonical(spelled), expected, "{spelled}");
        }
    }
}

#[test]
fn integers_keep_all_their_digits() {
    for integer in [
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
    ] {
        assert_eq!(canonical(integer), integer);
    }
    // This double is whole; so is the integer.
    assert_eq!(canonical("1152921504606846976.0"), "1152921504606846976");
}

#[test]
fn other_numbers_are_as_the_rfc_writes_them() {
    for (bits, expected) in [
        (0x0000_0000_0000_0001_u64, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
    ] {
        assert_eq!(value(&json!(f64::from_bits(bits))), expected);
    }
}

#[test]
fn strings_and_keys_are_escaped_and_sorted_as_the_rfc_says() {
    let text = canonical(r#""\u20ac$\u000f\nA'\u0042\u0022\u005c\\\"\/""#);
    assert_eq!(text, r#""€$\u000f\nA'B\"\\\\\"/""#);

    let keys =
        canonical(r#"{"\u20ac":0,"\r":0,"\ufb33":0,"1":0,"\ud83d\ude00":0,"\u0080":0,"\u00f6":0}"#);
    let expected = "{\"\\r\":0,\"1\":0,\"\u{80}\":0,\"ö\":0,\"€\":0,\"😀\":0,\"\u{fb33}\":0}";
    assert_eq!(keys, expected);
}

/// A text of `value` with white space, its keys in another order and its numbers spelled otherwise.
fn respelled(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(integer) if integer.unsigned_abs() < 1 << 53 => format!(" {integer}.0e0 "),
            Some(_) | None => format!("{number}"),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(respelled).collect();
            format!("[ {} ]", items.join("\t,"))
        }
        Value::Object(fields) => {
            let field = |(name, value)| format!("{}\n: {}", json!(name), respelled(value));
            let fields: Vec<String> = fields.iter().rev().map(field).collect();
            format!("{{ {} }}", fields.join(" , "))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-100..100_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let fields = prop::collection::btree_map(".{0,3}", inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whoever spells a value otherwise says the same.
    #[test]
    fn another_spelling_has_the_same_form(given in any_value()) {
        prop_assert_eq!(canonical(&respelled(&given)), value(&given));
    }

    /// The form is a text of the value itself, so two values have one form only if they are one.
    #[test]
    fn the_form_reads_back_as_the_value(given in any_value()) {
        let form = value(&given);
        let read: Value = serde_json::from_str(&form).expect("JSON");
        prop_assert!(same(&read, &given), "{form} {given}");
        prop_assert_eq!(value(&read), form);
    }
}

/// Whether two values are one, numbers compared by what they are worth.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let whole = |number: &Number| number.as_i128().or_else(|| whole(number.as_f64()?));
            match (whole(a), whole(b)) {
                (Some(a), Some(b)) => a == b,
                (None, None) => a.as_f64() == b.as_f64(),
                (Some(_), None) | (None, Some(_)) => false,
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let field = |(name, value)| b.get(name).is_some_and(|other| same(value, other));
            a.len() == b.len() && a.iter().all(field)
        }
        (a, b) => a == b,
    }
}

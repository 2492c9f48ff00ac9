//! Tests of how values read.

use super::*;

#[test]
fn durations_read_as_the_contract_writes_them() {
    for (text, millis) in [
        ("90s", 90_000),
        ("500ms", 500),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("0s", 0),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
    }
}

#[test]
fn what_is_no_duration_is_refused() {
    for text in [
        "",
        "90",
        "s",
        "-1s",
        "+1s",
        "1.5s",
        "1 s",
        "1d",
        "18446744073709551615h",
        "999999999999h",
    ] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn a_duration_is_written_as_it_is_read() {
    for text in ["0ms", "33ms", "1500ms", "90s", "30s", "5m", "1h", "36h"] {
        assert_eq!(duration(text).map(write_duration).as_deref(), Ok(text));
    }
}

#[test]
fn a_number_is_in_its_range() {
    let small = number(3_u32, 9);

    assert_eq!(small("3"), Ok(3));
    assert_eq!(small("9"), Ok(9));
    for text in ["2", "10", "-3", "three", "", "3.0"] {
        assert_eq!(
            small(text),
            Err("not a whole number from 3 to 9".to_owned()),
            "{text}"
        );
    }
}

#[test]
fn a_url_names_an_http_server_and_no_secret() {
    for text in [
        "http://127.0.0.1:8000/v1",
        "https://api.example/v1?version=2",
    ] {
        assert!(http_url(text).is_ok(), "{text}");
    }
    for text in [
        "",
        "api.example/v1",
        "ftp://api.example",
        "https://me:secret@api.example",
        "https://api.example/#top",
    ] {
        assert!(http_url(text).is_err(), "{text}");
    }
}

#[test]
fn a_list_says_which_item_is_wrong() {
    let spans = list(span);

    let seconds = |seconds| Duration::from_secs(seconds);
    assert_eq!(spans(" 1s, 2s ,"), Ok(vec![seconds(1), seconds(2)]));
    let said = r#""soon" is not a duration such as 90s, 500ms, 5m or 1h"#;
    assert_eq!(spans("1s,soon"), Err(said.to_owned()));
}

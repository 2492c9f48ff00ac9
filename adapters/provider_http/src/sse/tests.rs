use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

const LIMIT: usize = 100;

fn event(name: Option<&str>, data: &str) -> Event {
    Event {
        name: name.map(str::to_owned),
        data: data.to_owned(),
    }
}

fn decode(pieces: &[&[u8]]) -> Result<Vec<Event>, Corrupt> {
    let mut decoder = Decoder::new(LIMIT);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(event) = decoder.event()? {
            events.push(event);
        }
    }
    events.extend(decoder.finish());
    Ok(events)
}

fn decode_text(text: &str) -> Result<Vec<Event>, Corrupt> {
    decode(&[text.as_bytes()])
}

#[test]
fn fields_are_read_with_and_without_a_space_and_unknown_ones_are_passed_over() {
    let text =
        "event: a\nid: 7\nretry:1\nx-trace: y\ndata: one\ndata:two\ndata\n\ndata:  three\n\n";

    let events = decode_text(text);

    assert_eq!(
        events,
        Ok(vec![event(Some("a"), "one\ntwo\n"), event(None, " three")])
    );
}

#[test]
fn the_last_name_stands_and_an_empty_one_is_none() {
    let text = "event: a\nevent: b\ndata: 1\n\nevent:\ndata: 2\n\n";

    let events = decode_text(text);

    assert_eq!(events, Ok(vec![event(Some("b"), "1"), event(None, "2")]));
}

#[test]
fn comments_and_events_without_data_are_none() {
    let text = ": waiting\n\nevent: a\n\n:\n\ndata: 1\n\n";

    assert_eq!(decode_text(text), Ok(vec![event(None, "1")]));
}

#[test]
fn a_mark_of_the_byte_order_is_no_text() {
    assert_eq!(
        decode_text("\u{feff}data: 1\n\ndata: \u{feff}\n\n"),
        Ok(vec![event(None, "1"), event(None, "\u{feff}")])
    );
}

#[test]
fn the_end_of_the_file_ends_an_event() {
    for end in ["", "\n", "\r", "\r\n", "\n\n"] {
        let events = decode_text(&format!("data: 1{end}"));

        assert_eq!(events, Ok(vec![event(None, "1")]), "{end:?}");
    }
}

#[test]
fn an_event_that_is_cut_off_within_a_line_that_says_nothing_is_none() {
    assert_eq!(decode_text("data: 1\nda"), Ok(vec![]));
    assert_eq!(decode(&[b"data: 1\ndata: caf\xc3"]), Ok(vec![]));
}

#[test]
fn what_is_no_event_stream_is_corrupt() {
    let no_field = |line: &str| Err(Corrupt::NoField(line.to_owned()));

    assert_eq!(decode_text("<html>\n"), no_field("<html>"));
    assert_eq!(
        decode_text("{\"error\": \"no\"}\n"),
        no_field("{\"error\": \"no\"}")
    );
    assert_eq!(decode_text("dat\n"), no_field("dat"));
    assert_eq!(decode(&[b"data: \xff\n"]), Err(Corrupt::NotUtf8));
}

#[test]
fn what_waits_is_limited_in_one_line_and_in_many() {
    let too_long = Err(Corrupt::TooLong(LIMIT));

    assert_eq!(decode_text(&"x".repeat(LIMIT + 1)), too_long);
    let lines = format!("data: {}\n", "x".repeat(20));
    assert_eq!(decode_text(&lines.repeat(6)), too_long);
    let event = format!("data: {}\n\n", "x".repeat(LIMIT - 6));
    assert_eq!(decode_text(&event.repeat(6)).map(|it| it.len()), Ok(6));
}

proptest! {
    #[test]
    fn an_event_stream_says_the_same_wherever_it_is_cut(
        lines in prop::collection::vec(
            select(vec!["data: caf\u{e9}", "data", ": hm", "event: \u{1f600}", "", "x: y", "no field"]),
            0..12,
        ),
        ends in prop::collection::vec(select(vec!["\n", "\r", "\r\n"]), 12),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        let text: String = lines.iter().zip(&ends).flat_map(|(line, end)| [*line, *end]).collect();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();

        prop_assert_eq!(decode(&pieces), decode(&[bytes]));
    }

    #[test]
    fn no_bytes_are_too_strange(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..10),
    ) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let events = decode(&pieces).unwrap_or_default();

        prop_assert!(events.iter().all(|event| event.data.len() <= LIMIT));
    }
}

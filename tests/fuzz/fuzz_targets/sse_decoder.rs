//! Any bytes as an event stream: the events are the same however the bytes are cut, and none is longer
//! than the limit.

#![no_main]

use hango_provider_http::{Corrupt, Decoder, Event};
use libfuzzer_sys::fuzz_target;

mod cut;

const LIMIT: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let (events, end) = decode([bytes]);

    for event in &events {
        let name = event.name.as_ref().map_or(0, String::len);
        assert!(event.data.len() + name <= LIMIT, "{event:?}");
    }
    assert_eq!(decode(cut::pieces(bytes)), (events, end));
});

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Option<Corrupt>) {
    let mut decoder = Decoder::new(LIMIT);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece.to_vec().into());
        loop {
            match decoder.event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(corrupt) => return (events, Some(corrupt)),
            }
        }
    }
    events.extend(decoder.finish());
    (events, None)
}

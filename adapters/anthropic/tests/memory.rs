//! What a stream takes of memory, whatever its server sends: every byte of this process is counted, so
//! there is one test in it.

use hango_anthropic::AnthropicProvider;
use hango_provider_http::testing::flood::{self, FOR_EVER, Flood, Meter};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const METER: Meter = Meter {
    reset: || MEMORY.reset_peak_usage(),
    now: || MEMORY.current_usage(),
    most: || MEMORY.peak_usage(),
};

const STOP: &str = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                    data: {\"type\":\"message_stop\"}\n\n";

#[tokio::test]
async fn no_stream_takes_more_than_8_mib_and_each_ends_clearly() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let floods = flood::of_any_server().into_iter();

    flood::takes_little_memory(
        METER,
        floods
            .chain(values())
            .chain(waiting())
            .chain(answers())
            .chain(legal()),
        |settings| Box::new(AnthropicProvider::new(settings, &[]).expect("a provider")),
    )
    .await;
}

fn one(text: impl Into<String>) -> (String, usize) {
    (text.into(), 1)
}

fn many(text: &str, times: usize) -> (String, usize) {
    (text.to_owned(), times)
}

/// As often as makes two MiB.
fn two_mib(text: &str) -> (String, usize) {
    many(text, (2 << 20) / text.len())
}

/// A block begins: what stands before the text of its members.
fn start(index: u32, members: &str) -> String {
    let before = format!("data: {{\"type\":\"content_block_start\",\"index\":{index}");
    format!("{before},\"content_block\":{{{members}")
}

fn started(index: u32, members: &str) -> String {
    start(index, members) + "}}\n\n"
}

/// More of a block: what stands before the text of its members.
fn delta(index: u32, members: &str) -> String {
    let before = format!("data: {{\"type\":\"content_block_delta\",\"index\":{index}");
    format!("{before},\"delta\":{{{members}")
}

const TO_READ: &str = "sent an event that takes more than 2176 KiB to read";
const HELD: &str = "sent an event that brings more than 512 KiB of what waits";
const ANSWER: &str = "the answer has more than 2359296 bytes";

/// More values than their text.
fn values() -> Vec<Flood> {
    let kept = |index| start(index, "\"type\":\"future\",\"x\":");
    let of_values = |name, value: &str, before: &str| {
        let body = [one(before), two_mib(value), one("0]}}\n\n")];
        Flood::fails(name, TO_READ, body)
    };
    vec![
        of_values(
            "numbers nobody reads",
            "1,",
            "data: {\"type\":\"ping\",\"x\":[",
        ),
        of_values(
            "objects nobody reads",
            "{\"\":0},",
            "data: {\"type\":\"ping\",\"x\":[",
        ),
        of_values("empty objects", "{},", "data: {\"type\":\"ping\",\"x\":["),
        of_values("lists of an unknown block", "[[]],", &(kept(0) + "[")),
        of_values(
            "citations",
            "{},",
            &start(0, "\"type\":\"text\",\"citations\":["),
        ),
        of_values(
            "arguments of a beginning",
            "1,",
            &start(0, "\"type\":\"tool_use\",\"input\":["),
        ),
        of_values(
            "members of usage",
            "\"\",",
            "data: {\"type\":\"message_start\",\"message\":{\"usage\":[",
        ),
        Flood::fails(
            "values of a document",
            "sent a document that takes more than 2176 KiB to read",
            [one("{\"content\":["), two_mib("{},"), one("{}]}")],
        )
        .as_document(),
    ]
}

/// More than may wait for the end of a block.
fn waiting() -> Vec<Flood> {
    let kept = |index| start(index, "\"type\":\"future\",\"x\":");
    vec![
        Flood::fails(
            "an unknown block",
            HELD,
            [one(kept(0) + "\""), two_mib("x"), one("\\n\"}}\n\n")],
        ),
        Flood::fails(
            "many unknown blocks",
            HELD,
            (0..64).flat_map(|index| {
                [
                    one(kept(index) + "\""),
                    many("x", 64 << 10),
                    one("\"}}\n\n"),
                ]
            }),
        ),
        Flood::fails(
            "an unknown block that grows",
            HELD,
            [
                one(started(0, "\"type\":\"future\"")),
                one(delta(0, "\"type\":\"more\",\"x\":\"") + &"x".repeat(64 << 10) + "\"}}\n\n"),
                many(
                    &(delta(0, "\"type\":\"more\",\"x\":\"") + &"x".repeat(100) + "\\n\"}}\n\n"),
                    FOR_EVER,
                ),
            ],
        ),
        Flood::fails(
            "arguments of a server's tool",
            HELD,
            [
                one(started(0, "\"type\":\"future\"")),
                one(delta(
                    0,
                    "\"type\":\"input_json_delta\",\"partial_json\":\"[",
                )),
                many("1,", 200 << 10),
                one("1]\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"),
            ],
        ),
    ]
}

/// An answer that is too large, and other texts that are.
fn answers() -> Vec<Flood> {
    let text = || one(started(0, "\"type\":\"text\",\"text\":\"\""));
    let delta_of_text = delta(0, "\"type\":\"text_delta\",\"text\":\"");
    vec![
        Flood::fails(
            "many blocks",
            ANSWER,
            [many(
                &started(0, "\"type\":\"text\",\"text\":\"x\""),
                FOR_EVER,
            )],
        ),
        Flood::fails(
            "text in small deltas",
            ANSWER,
            [
                text(),
                many(
                    &format!("{delta_of_text}{}\"}}}}\n\n", "x".repeat(100)),
                    FOR_EVER,
                ),
            ],
        ),
        Flood::fails(
            "text in large deltas",
            ANSWER,
            [text()].into_iter().chain(
                (0..2).flat_map(|_| [one(&delta_of_text), two_mib("x"), one("\\n\"}}\n\n")]),
            ),
        ),
        Flood::fails(
            "all that is allowed at once",
            "sent an event that lacks",
            [
                text(),
                many(
                    &format!("{delta_of_text}{}\\n\"}}}}\n\n", "x".repeat(10_000)),
                    230,
                ),
                one(start(1, "\"type\":\"future\",\"x\":\"")),
                many("x", 500 << 10),
                one("\"}}\n\n"),
                one("data: {\"type\":\"ping\",\"x\":\""),
                two_mib("x"),
                one("\\n\"}\n\n"),
                one("data: {\"type\":\"content_block_delta\",\"x\":\""),
                two_mib("x"),
                one("\\n\"}\n\n"),
            ],
        ),
        Flood::fails(
            "a reason to stop",
            "the model stopped with xxx",
            [
                one("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\""),
                two_mib("x"),
                one("\\n\"}}\n\n"),
            ],
        ),
        Flood::fails(
            "the kind of an event",
            "that lacks what an event of its kind has",
            [one("data: {\"type\":\""), two_mib("x"), one("\\n\"}\n\n")],
        ),
    ]
}

fn legal() -> Vec<Flood> {
    let call = || {
        one(started(
            0,
            "\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\"",
        ))
    };
    let arguments = |text: &str| {
        let piece = delta(0, "\"type\":\"input_json_delta\",\"partial_json\":\"");
        [
            call(),
            one(piece + "{\\\"a\\\":["),
            many(text, ((2 << 20) - 20) / text.len()),
            one("0]}\"}}\n\n"),
            one(STOP),
        ]
    };
    let line = format!("\\\"{}\\\\n\\\",", "x".repeat(1 << 10));
    let small = delta(0, "\"type\":\"text_delta\",\"text\":\"") + &"x".repeat(100) + "\"}}\n\n";
    vec![
        Flood::answers("t7 2 MiB of arguments in one delta", arguments(&line)),
        Flood::answers("arguments of more values than are read", arguments("1,")),
        Flood::answers(
            "an answer at the limit in small deltas",
            [
                one(started(0, "\"type\":\"text\",\"text\":\"\"")),
                many(&small, 23_000),
                one(STOP),
            ],
        ),
        Flood::answers(
            "a document with 2 MiB of arguments",
            [
                one("{\"content\":[{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{\"a\":\""),
                two_mib("x"),
                one("\\n\"}}],\"stop_reason\":\"tool_use\"}"),
            ],
        )
        .as_document(),
    ]
}

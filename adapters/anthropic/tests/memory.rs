//! What a stream takes of memory, whatever its server sends: every byte of this process is counted, so
//! there is one test in it.

use hango_anthropic::AnthropicProvider;
use hango_provider_http::testing::flood::{self, ANSWER, FOR_EVER, Flood, LONG, Meter};
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

/// As often as makes an event that is nearly too long.
fn long(text: &str) -> (String, usize) {
    many(text, (LONG - 200) / text.len())
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

const TO_READ: &str = "sent an event that takes more than 1984 KiB to read";
const HELD: &str = "sent an event that brings more than 512 KiB of what waits";
const TOO_MUCH: &str = "the answer has more than 1835008 bytes";

/// More values than their text.
fn values() -> Vec<Flood> {
    let kept = |index| start(index, "\"type\":\"future\",\"x\":");
    let of_values = |name, value: &str, before: &str| {
        let body = [one(before), long(value), one("0]}}\n\n")];
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
            "sent a document that takes more than 1984 KiB to read",
            [one("{\"content\":["), long("{},"), one("{}]}")],
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
            [one(kept(0) + "\""), long("x"), one("\\n\"}}\n\n")],
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
            TOO_MUCH,
            [many(
                &started(0, "\"type\":\"text\",\"text\":\"x\""),
                FOR_EVER,
            )],
        ),
        Flood::fails(
            "text in small deltas",
            TOO_MUCH,
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
            "sent an answer of more than",
            [text()].into_iter().chain((0..2).flat_map(|_| {
                let half = many("x", LONG / 2 + 1000);
                [one(&delta_of_text), half, one("\\n\"}}\n\n")]
            })),
        ),
        Flood::fails(
            "an event without end behind a long answer",
            "sent an answer of more than",
            [
                text(),
                many(
                    &format!("{delta_of_text}{}\"}}}}\n\n", "x".repeat(100)),
                    ANSWER / 100,
                ),
                one("data: "),
                many("x", FOR_EVER),
            ],
        ),
        Flood::fails(
            "a long text behind many values",
            "sent an event that lacks",
            [
                one("data: {\"type\":7,\"x\":["),
                many("1,", 1000),
                one("\""),
                many("x", LONG - 3000),
                one("\\n\"]}\n\n"),
            ],
        ),
        Flood::fails(
            "a long text behind as many values as are read",
            "sent an event that lacks",
            [
                one("data: {\"type\":7,\"x\":["),
                many("1,", 4000),
                one("\""),
                many("x", LONG / 4 * 3),
                one("\\n\"]}\n\n"),
            ],
        ),
        Flood::fails(
            "all that is allowed at once",
            "sent an event that lacks",
            [
                text(),
                many(
                    &format!("{delta_of_text}{}\\n\"}}}}\n\n", "x".repeat(10_000)),
                    70,
                ),
                one(start(1, "\"type\":\"future\",\"x\":\"")),
                many("x", 500 << 10),
                one("\"}}\n\n"),
                one("data: {\"type\":\"ping\",\"x\":\""),
                many("x", 500 << 10),
                one("\\n\"}\n\n"),
                one("data: {\"type\":\"content_block_delta\",\"x\":\""),
                many("x", 500 << 10),
                one("\\n\"}\n\n"),
            ],
        ),
        Flood::fails(
            "a reason to stop",
            "the model stopped with xxx",
            [
                one("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\""),
                many("x", ANSWER - 200),
                one("\\n\"}}\n\n"),
            ],
        ),
        Flood::fails(
            "the kind of an event",
            "that lacks what an event of its kind has",
            [one("data: {\"type\":\""), long("x"), one("\\n\"}\n\n")],
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
            many(text, (ANSWER - 20) / text.len()),
            one("0]}\"}}\n\n"),
            one(STOP),
        ]
    };
    let line = format!("\\\"{}\\\\n\\\",", "x".repeat(1 << 10));
    let small = delta(0, "\"type\":\"text_delta\",\"text\":\"") + &"x".repeat(100) + "\"}}\n\n";
    vec![
        Flood::answers(
            "t7 nearly 2 MiB of arguments in one delta",
            arguments(&line),
        ),
        Flood::answers("arguments that are one long text", arguments("x")),
        Flood::answers(
            "arguments that grow",
            [
                call(),
                one(
                    delta(0, "\"type\":\"input_json_delta\",\"partial_json\":\"")
                        + "{\\\"a\\\":\\\"\"}}\n\n",
                ),
                many(
                    &(delta(0, "\"type\":\"input_json_delta\",\"partial_json\":\"")
                        + &"x".repeat(100)
                        + "\"}}\n\n"),
                    ANSWER / 100 - 1,
                ),
                one(
                    delta(0, "\"type\":\"input_json_delta\",\"partial_json\":\"")
                        + "\\\\n\\\"}\"}}\n\n",
                ),
                one(STOP),
            ],
        ),
        Flood::answers(
            "arguments that are encoded twice",
            [
                call(),
                one(
                    delta(0, "\"type\":\"input_json_delta\",\"partial_json\":\"")
                        + "\\\"{\\\\\\\"a\\\\\\\":\\\\\\\"",
                ),
                many("x", ANSWER - 200),
                one("\\\\\\\\n\\\\\\\"}\\\"\"}}\n\n"),
                one(STOP),
            ],
        ),
        Flood::answers("arguments of more values than are read", arguments("1,")),
        Flood::answers(
            "an answer at the limit in small deltas",
            [
                one(started(0, "\"type\":\"text\",\"text\":\"\"")),
                many(&small, ANSWER / 100),
                one(STOP),
            ],
        ),
        Flood::answers(
            "a document with nearly 2 MiB of arguments",
            [
                one("{\"content\":[{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{\"a\":\""),
                many("x", ANSWER - 200),
                one("\\n\"}}],\"stop_reason\":\"tool_use\"}"),
            ],
        )
        .as_document(),
    ]
}

//! What a stream takes of memory, whatever its server sends: every byte of this process is counted, so
//! there is one test in it.

use hango_openai::{Api, OpenAiProvider};
use hango_provider_http::testing::flood::{self, ANSWER, FOR_EVER, Flood, LONG, Meter};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const METER: Meter = Meter {
    reset: || MEMORY.reset_peak_usage(),
    now: || MEMORY.current_usage(),
    most: || MEMORY.peak_usage(),
};

#[tokio::test]
async fn no_stream_takes_more_than_8_mib_and_each_ends_clearly() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    for (api, own) in [
        (Api::Responses, of_responses()),
        (Api::ChatCompletions, of_chat()),
    ] {
        let floods = flood::of_any_server().into_iter().chain(own);
        flood::takes_little_memory(METER, floods, |settings| {
            Box::new(OpenAiProvider::new(settings, api, &[]).expect("a provider"))
        })
        .await;
    }
}

fn one(text: impl Into<String>) -> (String, usize) {
    (text.into(), 1)
}

/// As often as makes an event that is nearly too long.
fn long(text: &str) -> (String, usize) {
    (text.to_owned(), (LONG - 200) / text.len())
}

/// As often as makes more than half of such an event.
fn half(text: &str) -> (String, usize) {
    (text.to_owned(), (LONG / 2 + 1000) / text.len())
}

const TOO_MUCH: &str = "the answer has more than 1835008 bytes";

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn of_chat() -> Vec<Flood> {
    let delta = |members: &str| format!("data: {{\"choices\":[{{\"delta\":{{{members}");
    let call = |arguments: &str| {
        delta(&format!(
            "\"tool_calls\":[{{\"index\":0,\"id\":\"a\",\"function\":{{\"name\":\"f\",\"arguments\":{arguments}"
        ))
    };
    let end_of_call = "}}]}}]}\n\n";
    let stop =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let line = format!("\\\"{}\\\\n\\\",", "x".repeat(1 << 10));
    let small = delta("\"content\":\"") + &"x".repeat(100) + "\"}}]}\n\n";
    let large = || {
        [
            one(delta("\"content\":\"")),
            half("x"),
            one("\\n\"}}]}\n\n"),
        ]
    };
    vec![
        Flood::fails(
            "chat: text in small deltas",
            TOO_MUCH,
            [(small.clone(), FOR_EVER)],
        ),
        Flood::fails(
            "chat: text in large deltas",
            "sent an answer of more than",
            large().into_iter().chain(large()),
        ),
        Flood::fails(
            "chat: values nobody reads and no end",
            "the stream ended before its stop reason",
            [one("data: {\"x\":["), long("{\"\":0},"), one("0]}\n\n")],
        ),
        Flood::answers(
            "chat: t7 nearly 2 MiB of arguments in one delta",
            [
                one(call("\"{\\\"a\\\":[")),
                (line, (ANSWER - 200) / 1036),
                one(format!("0]}}\"{end_of_call}")),
                one(stop),
            ],
        ),
        Flood::answers(
            "chat: arguments as an object of many values",
            [
                one(call("{\"a\":[")),
                ("1,".to_owned(), ANSWER / 2 - 100),
                one(format!("0]}}{end_of_call}")),
                one(stop),
            ],
        ),
        Flood::answers(
            "chat: an answer at the limit in small deltas",
            [(small, ANSWER / 100), one(stop)],
        ),
        Flood::fails(
            "chat: a long text behind another",
            "the stream ended before its stop reason",
            [
                one(delta("\"reasoning\":\"")),
                half("x"),
                one("\\n\",\"content\":[{\"text\":\""),
                ("x".to_owned(), LONG / 2 - (80 << 10)),
                one("\\n\"},{\"text\":\"x\"}]}}]}\n\n"),
            ],
        ),
        Flood::fails(
            "chat: text in two parts",
            "the stream ended before its stop reason",
            [
                one(delta("\"content\":[{\"text\":\"")),
                ("x".to_owned(), ANSWER - (64 << 10)),
                one("\\n\"},{\"text\":\"x\"}]}}]}\n\n"),
            ],
        ),
        Flood::fails(
            "chat: thoughts within thoughts",
            "the stream ended before its stop reason",
            [
                one(delta("\"content\":")),
                ("[{\"thinking\":".to_owned(), 50_000),
                one("[]"),
                ("}]".to_owned(), 50_000),
                one("}}]}\n\n"),
            ],
        ),
        Flood::fails(
            "chat: details that wait for the end",
            "sent an answer of more than",
            [(
                delta("\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":\"")
                    + &"x".repeat(100 << 10)
                    + "\"}]}}]}\n\n",
                64,
            )],
        ),
        Flood::fails(
            "chat: calls of many candidates",
            "sent an event that is no completion",
            [
                one("data: {\"choices\":["),
                (
                    format!(
                        "{{\"index\":1,\"delta\":{{\"tool_calls\":[{}{{}}]}}}},",
                        "{},".repeat(255)
                    ),
                    256,
                ),
                one("{}]}\n\n"),
            ],
        ),
    ]
}

fn of_responses() -> Vec<Flood> {
    let small = "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\
                 \"item_id\":\"a\",\"delta\":\"";
    let added = |kind: &str| {
        one(format!(
            "data: {{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{{\"id\":\"a\",\
             \"type\":\"{kind}\"}}}}\n\n"
        ))
    };
    let text = format!("{small}{}\"}}\n\n", "x".repeat(100));
    let large = || [one(small), half("x"), one("\\n\"}\n\n")];
    let arguments = "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{\\\"a\\\":\\\"";
    let done = "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\\\"";
    let last = "data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
    vec![
        Flood::fails(
            "responses: text in small deltas",
            "more than",
            [added("message"), (text, FOR_EVER)],
        ),
        Flood::fails(
            "responses: text in large deltas",
            "sent an answer of more than",
            [added("message")].into_iter().chain(large()).chain(large()),
        ),
        Flood::answers(
            "responses: t7 nearly 2 MiB of arguments in one delta",
            [
                one(arguments),
                ("x".to_owned(), ANSWER - 200),
                one("\\n\\\"}\"}\n\n"),
                added("function_call"),
                one(last),
            ],
        ),
        Flood::answers(
            "responses: half as much, and once more at the end",
            [
                one(arguments),
                ("x".to_owned(), ANSWER / 2),
                one(format!("\\\"}}\"}}\n\n{done}")),
                ("x".to_owned(), ANSWER / 2),
                one(format!("\\\"}}\"}}}}\n\n{last}")),
            ],
        ),
        Flood::fails(
            "responses: arguments once more that do not fit",
            "sent an answer of more than",
            [
                one(arguments),
                ("x".to_owned(), ANSWER - 200),
                one(format!("\\\"}}\"}}\n\n{done}")),
                ("x".to_owned(), ANSWER - 200),
                one(format!("\\\"}}\"}}}}\n\n{last}")),
            ],
        ),
        Flood::fails(
            "responses: items that wait for the end",
            "sent an answer of more than",
            (0..64).map(|index| {
                one(format!(
                    "data: {{\"type\":\"response.output_item.added\",\"output_index\":{index},\"item\":{{\"id\":\"{}\",\
                     \"type\":\"function_call\"}}}}\n\n",
                    "x".repeat(100 << 10)
                ))
            }),
        ),
        Flood::fails(
            "responses: values of an unknown item",
            "makes the answer too large",
            [
                one(
                    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"a\",\"type\":\"future\",\"x\":[",
                ),
                long("{\"\":0},"),
                one("0]}}\n\n"),
            ],
        ),
        Flood::fails(
            "responses: values of the last word",
            "sent an event that",
            [
                one("data: {\"type\":\"response.completed\",\"response\":{\"output\":["),
                long("{\"\":0},"),
                one("0]}}\n\n"),
            ],
        ),
    ]
}

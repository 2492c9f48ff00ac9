//! What a stream takes of memory, whatever its server sends: every byte of this process is counted, so
//! there is one test in it.

use hango_openai::{Api, OpenAiProvider};
use hango_provider_http::testing::flood::{self, FOR_EVER, Flood, Meter};
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

/// As often as makes two MiB.
fn two_mib(text: &str) -> (String, usize) {
    (text.to_owned(), (2 << 20) / text.len())
}

const ANSWER: &str = "the answer has more than 2359296 bytes";

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
            two_mib("x"),
            one("\\n\"}}]}\n\n"),
        ]
    };
    vec![
        Flood::fails(
            "chat: text in small deltas",
            ANSWER,
            [(small.clone(), FOR_EVER)],
        ),
        Flood::fails(
            "chat: text in large deltas",
            ANSWER,
            large().into_iter().chain(large()),
        ),
        Flood::fails(
            "chat: values nobody reads and no end",
            "the stream ended before its stop reason",
            [one("data: {\"x\":["), two_mib("{\"\":0},"), one("0]}\n\n")],
        ),
        Flood::answers(
            "chat: t7 2 MiB of arguments in one delta",
            [
                one(call("\"{\\\"a\\\":[")),
                (line, ((2 << 20) - 200) / (1036)),
                one(format!("0]}}\"{end_of_call}")),
                one(stop),
            ],
        ),
        Flood::answers(
            "chat: arguments as an object of many values",
            [
                one(call("{\"a\":[")),
                two_mib("1,"),
                one(format!("0]}}{end_of_call}")),
                one(stop),
            ],
        ),
        Flood::answers(
            "chat: an answer at the limit in small deltas",
            [(small, 23_000), one(stop)],
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
    let large = || [one(small), two_mib("x"), one("\\n\"}\n\n")];
    vec![
        Flood::fails(
            "responses: text in small deltas",
            "more than",
            [added("message"), (text, FOR_EVER)],
        ),
        Flood::fails(
            "responses: text in large deltas",
            "makes the answer too large",
            [added("message")].into_iter().chain(large()).chain(large()),
        ),
        Flood::answers(
            "responses: t7 2 MiB of arguments in one delta, and once more at the end",
            [
                one(
                    "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{\\\"a\\\":\\\"",
                ),
                two_mib("x"),
                one(
                    "\\\"}\"}\n\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\\\"",
                ),
                two_mib("x"),
                one("\\\"}\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n"),
            ],
        ),
        Flood::fails(
            "responses: values of an unknown item",
            "makes the answer too large",
            [
                one(
                    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"a\",\"type\":\"future\",\"x\":[",
                ),
                two_mib("{\"\":0},"),
                one("0]}}\n\n"),
            ],
        ),
        Flood::fails(
            "responses: values of the last word",
            "sent an event that",
            [
                one("data: {\"type\":\"response.completed\",\"response\":{\"output\":["),
                two_mib("{\"\":0},"),
                one("0]}}\n\n"),
            ],
        ),
    ]
}

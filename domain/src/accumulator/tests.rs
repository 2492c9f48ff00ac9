use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::*;

const END: StreamEvent = StreamEvent::Stop(Stop::Answer(StopReason::EndTurn));

fn text(index: u32, text: &str) -> StreamEvent {
    let text = text.to_owned();
    StreamEvent::Text { index, text }
}

fn thinking(index: u32, text: &str) -> StreamEvent {
    let text = text.to_owned();
    StreamEvent::Thinking { index, text }
}

fn signature(index: u32, signature: &str) -> StreamEvent {
    let signature = signature.to_owned();
    StreamEvent::Signature { index, signature }
}

fn call(index: u32, id: &str) -> StreamEvent {
    StreamEvent::ToolUse {
        index,
        id: id.to_owned(),
        name: "f".to_owned(),
    }
}

fn input(index: u32, json: &str) -> StreamEvent {
    let json = json.to_owned();
    StreamEvent::ToolInput { index, json }
}

fn data() -> ProviderData {
    ProviderData {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        data: json!({"signature": "s"}),
    }
}

fn tool_use(id: &str, input: Value) -> Block {
    let Value::Object(input) = input else {
        panic!("not an object");
    };
    Block::ToolUse {
        id: id.to_owned(),
        name: "f".to_owned(),
        input,
        provider_data: None,
    }
}

fn accumulate(events: impl IntoIterator<Item = StreamEvent>) -> Result<Accumulator, ModelFailure> {
    let mut accumulator = Accumulator::new("call_3");
    for event in events {
        accumulator.push(event)?;
    }
    Ok(accumulator)
}

fn reply(events: impl IntoIterator<Item = StreamEvent>) -> Result<ModelReply, ModelFailure> {
    accumulate(events)?.finish()
}

fn kind<T>(outcome: Result<T, ModelFailure>) -> Option<ModelFailureKind> {
    outcome.err().map(|failure| failure.kind)
}

#[test]
fn an_answer_has_its_blocks_in_the_order_of_their_indexes() {
    let usage = Usage {
        input_tokens: 9,
        output_tokens: 16,
        ..Usage::default()
    };
    let answer = reply([
        StreamEvent::Usage(Usage::default()),
        call(5, "b"),
        call(3, "a"),
        text(2, "Let me "),
        input(3, "{\"x\""),
        input(5, "{}"),
        text(2, "see."),
        input(3, ":1}"),
        thinking(0, "hm"),
        signature(0, "old"),
        signature(0, "new"),
        StreamEvent::RedactedThinking {
            index: 1,
            data: "EmwK".to_owned(),
        },
        StreamEvent::Attach {
            index: 0,
            data: data(),
        },
        StreamEvent::Attach {
            index: 1,
            data: data(),
        },
        StreamEvent::Provider {
            index: 6,
            data: data(),
        },
        StreamEvent::Attach {
            index: 2,
            data: data(),
        },
        END,
        StreamEvent::Usage(usage),
    ]);

    let content = vec![
        Block::Thinking {
            thinking: "hm".to_owned(),
            signature: "new".to_owned(),
            provider_data: Some(data()),
        },
        Block::RedactedThinking {
            data: "EmwK".to_owned(),
            provider_data: Some(data()),
        },
        Block::Text {
            text: "Let me see.".to_owned(),
            provider_data: Some(data()),
        },
        tool_use("a", json!({"x": 1})),
        tool_use("b", json!({})),
        Block::Provider(data()),
    ];
    let expected = ModelReply {
        content,
        stop_reason: StopReason::ToolUse,
        usage,
        invalid_inputs: BTreeMap::new(),
    };
    assert_eq!(answer, Ok(expected));
}

#[test]
fn a_stream_without_a_stop_reason_is_no_answer() {
    let failure = reply([thinking(0, "hm"), text(1, "I th"), call(2, "a")]).err();

    let expected = ModelFailure {
        partial: vec![
            Block::Thinking {
                thinking: "hm".to_owned(),
                signature: String::new(),
                provider_data: None,
            },
            Block::text("I th"),
        ],
        ..ModelFailure::new(
            ModelFailureKind::Unavailable,
            "the stream ended before its stop reason",
        )
    };
    assert_eq!(failure, Some(expected));
}

#[test]
fn calls_decide_why_an_answer_ended() {
    let table = [
        (StopReason::EndTurn, true, StopReason::ToolUse),
        (StopReason::StopSequence, true, StopReason::ToolUse),
        (StopReason::Refusal, true, StopReason::ToolUse),
        (StopReason::MaxTokens, true, StopReason::MaxTokens),
        (StopReason::ToolUse, false, StopReason::EndTurn),
        (StopReason::Refusal, false, StopReason::Refusal),
    ];

    for (said, with_call, expected) in table {
        let call = with_call.then(|| call(1, "a"));
        let stop = StreamEvent::Stop(Stop::Answer(said));
        let answer = reply([text(0, "so")].into_iter().chain(call).chain([stop]));
        assert_eq!(answer.map(|answer| answer.stop_reason), Ok(expected));
    }
}

#[test]
fn stops_that_leave_no_answer_are_failures_that_name_them() {
    let stopped = |stop| reply([text(0, "so"), StreamEvent::Stop(stop)]);

    for stop in [
        Stop::Answer(StopReason::PauseTurn),
        Stop::Unsupported("pause_turn".to_owned()),
    ] {
        let failure = stopped(stop).expect_err("no answer");
        assert_eq!(failure.kind, ModelFailureKind::UnsupportedStop);
        assert!(failure.message.contains("pause_turn"));
        assert_eq!(failure.partial, [Block::text("so")]);
    }
    assert_eq!(
        kind(stopped(Stop::ContextExceeded)),
        Some(ModelFailureKind::ContextExceeded)
    );
}

#[test]
fn arguments_that_are_no_object_are_kept_beside_the_call() {
    let answer = reply([call(0, "a"), input(0, "{\"cmd\": \"ls"), END]).expect("a whole answer");

    assert_eq!(answer.content, [tool_use("a", json!({}))]);
    let invalid = BTreeMap::from([("a".to_owned(), "{\"cmd\": \"ls".to_owned())]);
    assert_eq!(answer.invalid_inputs, invalid);
}

#[test]
fn calls_without_an_id_or_with_a_used_one_get_their_own() {
    let answer = reply([
        call(0, ""),
        call(1, "a"),
        call(2, "a"),
        input(2, "7"),
        call(4, "call_3_0"),
        END,
    ])
    .expect("a whole answer");

    let ids: Vec<_> = answer
        .content
        .iter()
        .filter_map(Block::tool_use_id)
        .collect();
    assert_eq!(ids, ["call_3_0", "a", "a_2", "call_3_0_2"]);
    let invalid = BTreeMap::from([("a_2".to_owned(), "7".to_owned())]);
    assert_eq!(answer.invalid_inputs, invalid);
}

#[test]
fn blank_text_is_dropped_and_a_signature_without_thinking_is_kept() {
    let answer = reply([
        text(0, " \n"),
        thinking(1, ""),
        signature(2, "s"),
        text(3, "so"),
        END,
    ]);

    let content = vec![
        Block::Thinking {
            thinking: String::new(),
            signature: "s".to_owned(),
            provider_data: None,
        },
        Block::text("so"),
    ];
    assert_eq!(answer.map(|answer| answer.content), Ok(content));
}

#[test]
fn events_that_do_not_follow_are_refused() {
    let attach = |index| StreamEvent::Attach {
        index,
        data: data(),
    };
    let redacted = StreamEvent::RedactedThinking {
        index: 0,
        data: String::new(),
    };
    let kept = StreamEvent::Provider {
        index: 0,
        data: data(),
    };
    for events in [
        vec![call(0, "a"), text(0, "so")],
        vec![text(0, "so"), thinking(0, "hm")],
        vec![text(0, "so"), signature(0, "s")],
        vec![text(0, "so"), input(0, "{}")],
        vec![text(0, "so"), redacted],
        vec![input(0, "{}")],
        vec![attach(0)],
        vec![kept, attach(0)],
        vec![call(0, "a"), call(0, "a")],
    ] {
        assert_eq!(kind(accumulate(events)), Some(ModelFailureKind::Protocol));
    }
}

#[test]
fn an_answer_is_limited_in_bytes_blocks_and_calls() {
    let mut small = Accumulator::with_limit("call", BLOCK_BYTES + 36);
    assert_eq!(small.push(text(0, &"a".repeat(36))), Ok(()));
    let failure = small.push(text(0, "b")).expect_err("too large");
    assert_eq!(failure.kind, ModelFailureKind::Protocol);
    assert_eq!(failure.partial, [Block::text("a".repeat(36))]);

    let mut many = Accumulator::with_limit("call", BLOCK_BYTES);
    assert_eq!(many.push(text(0, "")), Ok(()));
    assert_eq!(
        kind(many.push(text(1, ""))),
        Some(ModelFailureKind::Protocol)
    );

    let calls = |count| accumulate((0..count).map(|index| call(index, "")));
    assert_eq!(kind(calls(64)), None);
    assert_eq!(kind(calls(65)), Some(ModelFailureKind::Protocol));
}

#[test]
fn a_surrogate_pair_may_be_split_between_two_fragments_of_arguments() {
    let answer = reply([
        call(0, "a"),
        input(0, r#"{"x":"\ud83d"#),
        input(0, r"\ude00\ud83d"),
        input(0, r#""}"#),
        END,
    ]);

    let content = answer.map(|answer| answer.content);
    assert_eq!(
        content,
        Ok(vec![tool_use("a", json!({"x": "\u{1f600}\u{fffd}"}))])
    );
}

/// The canonical form keeps as much; a number beyond is the double that it is nearest to.
#[test]
fn whole_numbers_of_64_bits_keep_all_their_digits() {
    let numbers = "18446744073709551615,-9223372036854775808,9007199254740993";
    let beyond = "12345678901234567890123,0.1000000000000000055";

    let answer = reply([
        call(0, "a"),
        input(0, &format!("{{\"x\":[{numbers},{beyond}]}}")),
        END,
    ]);

    let content = answer.map(|answer| answer.content);
    let kept = json!({"x": [
        u64::MAX, i64::MIN, 9_007_199_254_740_993_u64, 12_345_678_901_234_567_890_123_f64, 0.1,
    ]});
    assert_eq!(content, Ok(vec![tool_use("a", kept)]));
}

#[test]
fn arguments_that_weigh_more_than_an_answer_may_are_not_read() {
    let json = format!("{{\"x\":[{}0]}}", "{},".repeat(4000));

    let answer = reply([
        call(0, "a"),
        input(0, &json),
        call(1, "b"),
        input(1, "{}"),
        END,
    ]);

    let answer = answer.expect("whole");
    assert_eq!(
        answer.content,
        [tool_use("a", json!({})), tool_use("b", json!({}))]
    );
    assert_eq!(
        answer.invalid_inputs,
        BTreeMap::from([("a".to_owned(), json)])
    );
}

#[test]
fn a_reason_that_nobody_knows_counts_and_is_told_shortly() {
    let stop = |bytes| StreamEvent::Stop(Stop::Unsupported("x".repeat(bytes)));

    let long = reply([stop(1000)]).expect_err("no answer");
    let too_long = reply([stop(MAX_ANSWER_BYTES + 1)]).expect_err("no answer");

    assert!(long.message.len() < 200, "{}", long.message);
    assert_eq!(too_long.kind, ModelFailureKind::Protocol);
}

#[test]
fn thinking_alone_is_an_empty_answer() {
    let is_empty = |events: Vec<StreamEvent>| {
        reply(events.into_iter().chain([END])).map(|answer| answer.is_empty_answer())
    };

    assert_eq!(is_empty(vec![]), Ok(true));
    assert_eq!(is_empty(vec![thinking(0, "hm"), text(1, " ")]), Ok(true));
    assert_eq!(is_empty(vec![text(0, "so")]), Ok(false));
    assert_eq!(is_empty(vec![call(0, "a")]), Ok(false));
}

/// A block's content, in the pieces in which it comes.
#[derive(Clone, Debug)]
enum Spec {
    Text(Vec<String>),
    Thinking(Vec<String>),
    Call(&'static str, Vec<String>),
}

impl Spec {
    fn any() -> impl Strategy<Value = Self> {
        let pieces = || vec("[a-zé \n]{0,3}", 0..5);
        let json = vec(
            select(vec!["{", "}", "\"x\":1", "null", "\\ud83d", "\""]).prop_map(str::to_owned),
            0..5,
        );
        prop_oneof![
            pieces().prop_map(Self::Text),
            pieces().prop_map(Self::Thinking),
            (select(vec!["", "a", "a_2"]), json).prop_map(|(id, json)| Self::Call(id, json)),
        ]
    }

    fn in_pieces(&self, index: u32) -> Vec<StreamEvent> {
        match self {
            Self::Text(pieces) => pieces.iter().map(|piece| text(index, piece)).collect(),
            Self::Thinking(pieces) => pieces.iter().map(|piece| thinking(index, piece)).collect(),
            Self::Call(id, pieces) => [call(index, id)]
                .into_iter()
                .chain(pieces.iter().map(|piece| input(index, piece)))
                .collect(),
        }
    }

    fn whole(&self, index: u32) -> Vec<StreamEvent> {
        match self {
            Self::Text(pieces) => vec![text(index, &pieces.concat())],
            Self::Thinking(pieces) => vec![thinking(index, &pieces.concat())],
            Self::Call(id, pieces) => vec![call(index, id), input(index, &pieces.concat())],
        }
    }
}

/// The blocks' events in a random order which keeps that of each block.
fn interleave(mut blocks: Vec<Vec<StreamEvent>>, picks: &[Index]) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    let mut picks = picks.iter().cycle();
    blocks.retain(|block| !block.is_empty());
    while !blocks.is_empty() {
        let pick = picks.next().map_or(0, |pick| pick.index(blocks.len()));
        events.push(blocks[pick].remove(0));
        blocks.retain(|block| !block.is_empty());
    }
    events
}

fn any_event() -> impl Strategy<Value = StreamEvent> {
    let stop = select(vec![
        Stop::Answer(StopReason::EndTurn),
        Stop::Answer(StopReason::MaxTokens),
        Stop::ContextExceeded,
    ]);
    let index = || 0..4_u32;
    prop_oneof![
        (index(), "[ a]{0,2}").prop_map(|(index, more)| text(index, &more)),
        (index(), "[ a]{0,2}").prop_map(|(index, more)| thinking(index, &more)),
        index().prop_map(|index| signature(index, "s")),
        (index(), select(vec!["", "a"])).prop_map(|(index, id)| call(index, id)),
        (index(), "[{}\"]{0,2}").prop_map(|(index, json)| input(index, &json)),
        stop.prop_map(StreamEvent::Stop),
    ]
}

proptest! {
    #[test]
    fn any_split_of_an_answer_is_the_same_answer(
        specs in vec(Spec::any(), 0..6),
        picks in vec(any::<Index>(), 1..40),
    ) {
        let whole = (0..).zip(&specs).flat_map(|(index, spec)| spec.whole(index)).chain([END]);
        let pieces = (0..).zip(&specs).map(|(index, spec)| spec.in_pieces(index)).collect();

        let split = interleave(pieces, &picks).into_iter().chain([END]);

        prop_assert_eq!(reply(split), reply(whole));
    }

    #[test]
    fn the_beginning_of_a_stream_is_never_an_answer(
        specs in vec(Spec::any(), 0..6),
        picks in vec(any::<Index>(), 1..40),
        length in any::<Index>(),
    ) {
        let pieces = (0..).zip(&specs).map(|(index, spec)| spec.in_pieces(index)).collect();
        let mut events = interleave(pieces, &picks);
        events.truncate(length.index(events.len() + 1));

        let failure = reply(events).expect_err("not whole");

        prop_assert_eq!(failure.kind, ModelFailureKind::Unavailable);
        prop_assert!(failure.partial.iter().all(|block| block.tool_use_id().is_none()));
    }

    #[test]
    fn whatever_comes_an_answer_has_unique_calls_and_no_blank_text(
        events in vec(any_event(), 0..12),
    ) {
        let Ok(answer) = reply(events) else {
            return Ok(());
        };
        let ids: Vec<_> = answer.content.iter().filter_map(Block::tool_use_id).collect();
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();

        prop_assert_eq!(unique.len(), ids.len());
        prop_assert!(answer.content.iter().filter_map(Block::as_text).all(|text| !is_blank(text)));
        prop_assert!(answer.invalid_inputs.keys().all(|id| ids.contains(&id.as_str())));
    }
}

#![expect(
    clippy::unnecessary_wraps,
    reason = "events are compared with the items of a stream"
)]

use futures::executor::block_on;
use hango_domain::model::ModelFailureKind;

use super::*;
use crate::script::Script;

/// The events of the one rule of this script, played in an empty scene.
fn events(rule: &str) -> Result<Vec<Result<StreamEvent, ModelFailure>>, ModelFailure> {
    let script = Script::from_toml(&format!("[[rules]]\n{rule}")).expect("a script");
    let stream = play(&script.rules[0], &Scene::default(), Duration::ZERO)?;
    Ok(block_on(stream.collect()))
}

fn text(index: u32, text: &str) -> Result<StreamEvent, ModelFailure> {
    Ok(StreamEvent::Text {
        index,
        text: text.to_owned(),
    })
}

fn input(index: u32, json: &str) -> Result<StreamEvent, ModelFailure> {
    Ok(StreamEvent::ToolInput {
        index,
        json: json.to_owned(),
    })
}

fn stop(reason: StopReason) -> Result<StreamEvent, ModelFailure> {
    Ok(StreamEvent::Stop(Stop::Answer(reason)))
}

fn usage(output_tokens: u64) -> Result<StreamEvent, ModelFailure> {
    Ok(StreamEvent::Usage(Usage {
        output_tokens,
        ..Usage::default()
    }))
}

#[test]
fn text_comes_word_by_word_and_calls_in_pieces() {
    let events = events(
        "steps = [{ thinking = 'hm' }, { text = 'One moment.' },
                  { tool = { name = 'f', input = { x = 1 } } }]",
    );

    let thinking = Ok(StreamEvent::Thinking {
        index: 0,
        text: "hm".to_owned(),
    });
    let call = Ok(StreamEvent::ToolUse {
        index: 2,
        id: "call_1".to_owned(),
        name: "f".to_owned(),
    });
    let expected = vec![
        thinking,
        text(1, "One "),
        text(1, "moment."),
        call,
        input(2, "{\"x"),
        input(2, "\":1}"),
        usage(6),
        stop(StopReason::ToolUse),
    ];
    assert_eq!(events, Ok(expected));
}

#[test]
fn a_rule_may_say_what_it_costs_and_why_it_stops() {
    let events = events(
        "steps = [{ tool = { name = 'f', id = 'a', arguments = '{\"x' } }]
         stop_reason = 'max_tokens'
         usage = { output_tokens = 7 }",
    );

    let call = Ok(StreamEvent::ToolUse {
        index: 0,
        id: "a".to_owned(),
        name: "f".to_owned(),
    });
    let expected = vec![
        call,
        input(0, "{"),
        input(0, "\"x"),
        usage(7),
        stop(StopReason::MaxTokens),
    ];
    assert_eq!(events, Ok(expected));
}

#[test]
fn a_failure_comes_before_the_answer_or_within_it() {
    let failing = "{ fail = { kind = 'protocol', message = 'no', retry_after_ms = 5 } }";
    let failure = ModelFailure {
        retry_after: Some(Duration::from_millis(5)),
        ..ModelFailure::new(ModelFailureKind::Protocol, "no")
    };

    assert_eq!(
        events(&format!("steps = [{failing}]")),
        Err(failure.clone())
    );
    assert_eq!(
        events(&format!(
            "steps = [{{ text = 'Well' }}, {failing}, {{ text = 'never' }}]"
        )),
        Ok(vec![text(0, "Well"), Err(failure)])
    );
}

#[test]
fn a_stream_that_is_cut_has_no_stop() {
    let steps = "steps = [{ text = 'a b c' }]";

    assert_eq!(
        events(&format!("{steps}\ncut_after = 2")),
        Ok(vec![text(0, "a "), text(0, "b ")])
    );
    assert_eq!(
        events(&format!("{steps}\ncut_after = 9")),
        Ok(vec![text(0, "a "), text(0, "b "), text(0, "c")])
    );
}

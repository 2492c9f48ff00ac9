//! The demo's model: it knows how to look at the clock, and how to say what it is.

mod zones;

use std::time::Duration;

use serde_json::Map;

use crate::scene::{Scene, Seen};
use crate::script::{Rule, Step, ToolStep};

/// Slow enough to be seen, fast enough to be no bother.
pub(crate) const WORD_DELAY: Duration = Duration::from_millis(15);

/// How many times slower it speaks when it is asked to: slow enough to do something in the middle of an
/// answer, such as to end the process.
const SLOWER: u32 = 32;

/// The tool that the demo calls.
const GET_TIME: &str = "get_time";

/// How much of the user's words is repeated.
const MAX_QUOTE: usize = 200;

const WHO_I_AM: &str = "I am hango's built-in demo model: I can look at the clock and nothing else. \
                        Ask me what time it is in Tokyo, or configure a provider to talk to a real \
                        model.";

/// What the demo answers in a scene.
pub(crate) fn rule(scene: &Scene) -> Rule {
    let can_look = scene.tools.iter().any(|tool| tool == GET_TIME);
    let steps = match scene.turn {
        0 if can_look => look(scene),
        _ => vec![Step::Text(tell(scene))],
    };
    Rule {
        steps,
        ..Rule::default()
    }
}

/// How many times slower than usual the demo speaks in a scene.
pub(crate) fn slowness(scene: &Scene) -> u32 {
    if scene.text.to_lowercase().contains("slowly") {
        SLOWER
    } else {
        1
    }
}

/// A few words and a call for each place that the user named; one without a zone if he named none.
fn look(scene: &Scene) -> Vec<Step> {
    let zones = zones::named_in(&scene.text);
    let asks = zones.iter().map(|zone| {
        let input = Map::from_iter([("timezone".to_owned(), zone.as_str().into())]);
        clock(input)
    });
    let mut steps = vec![Step::Text("Let me look at the clock.".to_owned())];
    steps.extend(asks);
    if zones.is_empty() {
        steps.push(clock(Map::new()));
    }
    steps
}

fn clock(input: Map<String, serde_json::Value>) -> Step {
    Step::Tool(ToolStep {
        name: GET_TIME.to_owned(),
        input,
        ..ToolStep::default()
    })
}

fn tell(scene: &Scene) -> String {
    let times: Vec<String> = scene.results.iter().map(sentence).collect();
    if !times.is_empty() && zones::is_about_time(&scene.text) {
        return times.join("\n");
    }
    let mut sentences = Vec::new();
    if !scene.text.trim().is_empty() {
        sentences.push(format!("You said: \u{201c}{}\u{201d}.", quote(&scene.text)));
    }
    sentences.extend(times);
    sentences.push(WHO_I_AM.to_owned());
    sentences.join(" ")
}

/// Such as `It is 04:15 in Europe/Berlin: 2026-11-30T04:15:00+01:00[Europe/Berlin] (Monday).`
fn sentence(seen: &Seen) -> String {
    let Seen {
        tool,
        content,
        is_error,
    } = seen;
    match (tool == GET_TIME, is_error, time_and_zone(content)) {
        (true, false, Some((time, zone))) => format!("It is {time} in {zone}: {content}."),
        (true, false, None) => format!("The clock says {content}."),
        (true, true, _) => format!("The clock could not tell: {content}."),
        (false, _, _) => format!("The tool {tool} said: {}.", quote(content)),
    }
}

fn time_and_zone(content: &str) -> Option<(&str, &str)> {
    let (_, time) = content.split_once('T')?;
    let (_, zone) = content.split_once('[')?;
    Some((time.get(..5)?, zone.split_once(']')?.0))
}

fn quote(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hango_domain::conversation::{Block, StopReason};
    use hango_domain::model::ModelReply;
    use serde_json::json;

    use super::*;
    use crate::ScriptedProvider;
    use crate::fixtures::{answer, assistant, call, result, user};

    const BERLIN: &str = "2026-11-30T04:15:00+01:00[Europe/Berlin] (Monday)";

    fn demo() -> ScriptedProvider {
        ScriptedProvider::demo().with_word_delay(Duration::ZERO)
    }

    fn first(text: &str) -> ModelReply {
        answer(&demo(), call([user(Block::text(text))])).expect("whole")
    }

    /// The answer after the first answer's only call brought this.
    fn second(text: &str, content: &str) -> ModelReply {
        let first = first(text);
        let messages = [
            user(Block::text(text)),
            assistant(first.content),
            user(result("call_1", content)),
        ];
        answer(&demo(), call(messages)).expect("whole")
    }

    fn inputs(reply: &ModelReply) -> Vec<serde_json::Value> {
        let inputs = reply.content.iter().filter_map(|block| match block {
            Block::ToolUse { name, input, .. } if name == GET_TIME => Some(json!(input)),
            _ => None,
        });
        inputs.collect()
    }

    #[test]
    fn a_question_for_the_time_somewhere_is_taken_to_the_clock() {
        let reply = first("What time is it in Berlin?");

        assert_eq!(reply.content[0], Block::text("Let me look at the clock."));
        assert_eq!(inputs(&reply), [json!({"timezone": "Europe/Berlin"})]);
        assert_eq!(reply.stop_reason, StopReason::ToolUse);
        assert!(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0);
    }

    #[test]
    fn several_places_are_asked_for_at_once() {
        let reply = first("Compare the time in Tokyo and New York");

        let expected = [
            json!({"timezone": "Asia/Tokyo"}),
            json!({"timezone": "America/New_York"}),
        ];
        assert_eq!(inputs(&reply), expected);
    }

    #[test]
    fn the_answer_quotes_the_clock() {
        let reply = second("What time is it in Berlin?", BERLIN);

        let text = format!("It is 04:15 in Europe/Berlin: {BERLIN}.");
        assert_eq!(reply.content, [Block::text(text)]);
        assert_eq!(reply.stop_reason, StopReason::EndTurn);
    }

    #[test]
    fn whoever_says_something_else_is_told_the_time_and_who_speaks() {
        assert_eq!(inputs(&first("Hello!")), [json!({})]);

        let reply = second("Hello!", "2026-11-30T03:15:00+00:00[UTC] (Monday)");

        let text = reply.content[0].as_text().expect("text");
        assert!(text.starts_with("You said: \u{201c}Hello!\u{201d}. It is 03:15 in UTC: 2026"));
        assert!(text.ends_with("a real model."));
    }

    #[test]
    fn without_the_clock_there_is_text_only() {
        let mut call = call([user(Block::text("What time is it?"))]);
        call.tools.clear();

        let reply = answer(&demo(), call).expect("whole");

        assert_eq!(inputs(&reply), [] as [serde_json::Value; 0]);
        assert!(
            reply.content[0]
                .as_text()
                .is_some_and(|text| text.ends_with(WHO_I_AM))
        );
    }

    #[test]
    fn what_the_user_said_is_repeated_in_part() {
        let reply = second(&"x".repeat(10_000), "odd");

        let text = reply.content[0].as_text().expect("text");
        assert!(text.contains("The clock says odd.") && text.len() < 600);
    }
}

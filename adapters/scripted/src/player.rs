//! Plays an answer: its steps as the events of a stream, each at its time.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use hango_domain::conversation::{StopReason, Usage};
use hango_domain::model::{ModelFailure, Stop, StreamEvent};
use hango_ports::provider::AnswerStream;
use serde_json::Value;

use crate::scene::{Scene, tokens};
use crate::script::{Rule, Step, ToolStep};

/// One event and how long to wait before it.
type Cue = (Duration, Result<StreamEvent, ModelFailure>);

/// The answer that a rule gives in a scene; an error if it fails before it begins.
pub(crate) fn play(
    rule: &Rule,
    scene: &Scene,
    word_delay: Duration,
) -> Result<AnswerStream, ModelFailure> {
    if let Some(Step::Fail(failure)) = rule.steps.first() {
        return Err(failure.failure());
    }
    let cues = Cues::of(rule, scene, word_delay);
    let events = stream::unfold(VecDeque::from(cues), |mut cues| async move {
        let (wait, event) = cues.pop_front()?;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Some((event, cues))
    });
    Ok(events.boxed())
}

/// Writes down what will be played.
struct Cues<'a> {
    scene: &'a Scene,
    word_delay: Duration,
    written: Vec<Cue>,
    wait: Duration,
    block: u32,
    calls: usize,
    output: usize,
}

impl<'a> Cues<'a> {
    fn of(rule: &Rule, scene: &'a Scene, word_delay: Duration) -> Vec<Cue> {
        let mut cues = Self {
            scene,
            word_delay,
            written: Vec::new(),
            wait: Duration::ZERO,
            block: 0,
            calls: 0,
            output: 0,
        };
        for step in &rule.steps {
            match step {
                Step::Text(text) => {
                    cues.words(text, |index, text| StreamEvent::Text { index, text });
                }
                Step::Thinking(text) => {
                    cues.words(text, |index, text| StreamEvent::Thinking { index, text });
                }
                Step::Tool(tool) => cues.tool(tool),
                Step::WaitMs(wait) => cues.wait += Duration::from_millis(*wait),
                Step::Fail(failure) => {
                    cues.written.push((cues.wait, Err(failure.failure())));
                    return cues.cut(rule.cut_after);
                }
            }
        }
        cues.end(rule);
        cues.cut(rule.cut_after)
    }

    fn words(&mut self, text: &str, event: fn(u32, String) -> StreamEvent) {
        self.output += text.len();
        for word in text.split_inclusive(char::is_whitespace) {
            self.wait += self.word_delay;
            self.event(event(self.block, word.to_owned()));
        }
        self.block += 1;
    }

    /// A call's arguments come in two pieces, as they do from models.
    fn tool(&mut self, tool: &ToolStep) {
        self.calls += 1;
        let number = self.scene.calls + self.calls;
        let index = self.block;
        self.wait += self.word_delay;
        self.event(StreamEvent::ToolUse {
            index,
            id: tool.id.clone().unwrap_or_else(|| format!("call_{number}")),
            name: tool.name.clone(),
        });
        let json = match &tool.arguments {
            Some(arguments) => arguments.clone(),
            None => Value::Object(tool.input.clone()).to_string(),
        };
        self.output += tool.name.len() + json.len();
        let (head, tail) = json.split_at(json.floor_char_boundary(json.len() / 2));
        for piece in [head, tail].into_iter().filter(|piece| !piece.is_empty()) {
            let json = piece.to_owned();
            self.event(StreamEvent::ToolInput { index, json });
        }
        self.block += 1;
    }

    fn end(&mut self, rule: &Rule) {
        let by_steps = if self.calls > 0 {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        };
        let estimated = Usage {
            input_tokens: self.scene.input_tokens,
            output_tokens: tokens(self.output),
            ..Usage::default()
        };
        self.event(StreamEvent::Usage(
            rule.usage.map_or(estimated, Usage::from),
        ));
        let reason = rule.stop_reason.unwrap_or(by_steps);
        self.event(StreamEvent::Stop(Stop::Answer(reason)));
    }

    fn event(&mut self, event: StreamEvent) {
        self.written
            .push((std::mem::take(&mut self.wait), Ok(event)));
    }

    /// A stream that breaks off says nothing of it: it has no stop.
    fn cut(mut self, after: Option<usize>) -> Vec<Cue> {
        if let Some(after) = after {
            self.written.retain(|(_, event)| {
                !matches!(event, Ok(StreamEvent::Usage(_) | StreamEvent::Stop(_)))
            });
            self.written.truncate(after);
        }
        self.written
    }
}

#[cfg(test)]
mod tests;

//! Turns the stream's chunks into hango's events. Pure: a test is a list of payloads.
//!
//! * Text and thinking are one block each, numbered 0 and 1 as they come; tool calls follow from 2 on.
//! * A stop is told of as soon as it is known, and reading goes on behind it: usage comes later.
//! * `[DONE]` ends the stream. If no usable reason came before it, an answer of text alone is taken as
//!   ended; anything else stays incomplete.
//! * An error in the stream is the failure that the same error would be as an HTTP status.

use hango_domain::conversation::{ProviderData, StopReason};
use hango_domain::model::{ModelFailure, ModelFailureKind, Stop, StreamEvent};
use hango_domain::text::mend_json;
use hango_provider_http::{Dialect, Event, Flow, Origin, error_of};
use serde_json::{Value, json};

use super::calls::{Calls, TooMany};
use super::chunk::{CallDelta, Choice, Chunk, Content, Delta, Part, usage};

/// The first block behind text and thinking.
const FIRST_CALL: u32 = 2;

/// Where the mapping of one answer stands.
#[derive(Debug)]
pub(crate) struct Mapping {
    origin: Origin,
    model: String,
    /// The block of the text, and of the thinking, once there is one.
    text: Option<u32>,
    thinking: Option<u32>,
    calls: Calls,
    refused: bool,
    stopped: bool,
    /// A finish reason that nobody knows.
    unknown: Option<String>,
}

impl Dialect for Mapping {
    fn event(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Flow, ModelFailure> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.end(out);
            return Ok(Flow::Done);
        }
        if data.is_empty() {
            return Ok(Flow::More);
        }
        self.chunk(data, out)?;
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        self.chunk(body, out)?;
        self.end(out);
        Ok(())
    }

    /// It was all, if it gave a reason before.
    fn closed(&mut self, out: &mut Vec<StreamEvent>) {
        if self.unknown.is_some() {
            self.end(out);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }
}

impl Mapping {
    /// Nothing has come yet.
    pub(crate) fn new(origin: Origin, model: impl Into<String>) -> Self {
        Self {
            origin,
            model: model.into(),
            text: None,
            thinking: None,
            calls: Calls::new(FIRST_CALL),
            refused: false,
            stopped: false,
            unknown: None,
        }
    }

    fn chunk(&mut self, json: &str, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        let value: Value = serde_json::from_str(&mend_json(json))
            .map_err(|_| self.origin.garbled("an event that is not JSON", json))?;
        if error_of(&value).is_some() {
            return Err(self.origin.reported(&value));
        }
        let chunk: Chunk = serde_json::from_value(value)
            .map_err(|_| self.origin.garbled("an event that is no completion", json))?;
        for choice in chunk.choices.unwrap_or_default() {
            // Other candidates were not asked for.
            if choice.index.unwrap_or(0) == 0 {
                self.choice(choice, out)?;
            }
        }
        if let Some(wire) = chunk.usage.filter(Value::is_object) {
            out.push(StreamEvent::Usage(usage(&wire)));
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        let finish = choice.finish_reason.clone();
        if let Some(delta) = choice.addition() {
            self.delta(delta, out)?;
        }
        match finish.as_deref().map(str::trim) {
            None | Some("") => Ok(()),
            Some(reason) => self.finish(reason, out),
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        // Servers that still send the older form send it beside the calls that replaced it.
        let calls = delta.tool_calls.unwrap_or_default();
        if delta.function_call.is_some() && calls.is_empty() {
            let message = "asked for a tool by function_call, which is not supported";
            return Err(self
                .origin
                .failure(ModelFailureKind::UnsupportedStop, message));
        }
        let reasoning = delta.reasoning_content.filter(|text| !text.is_empty());
        if let Some(reasoning) = reasoning.or(delta.reasoning) {
            self.thinking(reasoning, out);
        }
        match delta.content {
            Some(Content::Text(text)) => self.text(text, out),
            Some(Content::Parts(parts)) => self.parts(parts, out),
            None => {}
        }
        if let Some(refusal) = delta.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.text(refusal, out);
        }
        for call in calls {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn parts(&mut self, parts: Vec<Part>, out: &mut Vec<StreamEvent>) {
        for part in parts {
            if let Some(thinking) = part.thinking {
                self.thinking(flatten(thinking), out);
            }
            if let Some(text) = part.text {
                self.text(text, out);
            }
        }
    }

    fn text(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let index = *self.text.get_or_insert(u32::from(self.thinking.is_some()));
            out.push(StreamEvent::Text { index, text });
        }
    }

    fn thinking(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let index = *self.thinking.get_or_insert(u32::from(self.text.is_some()));
            out.push(StreamEvent::Thinking { index, text });
        }
    }

    fn call(
        &mut self,
        mut call: CallDelta,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), ModelFailure> {
        let extra = call.extra_content.take();
        let block = self.calls.push(call, out).map_err(|TooMany| {
            self.origin.failure(
                ModelFailureKind::Protocol,
                "asks for too many tools at once",
            )
        })?;
        if let (Some(index), Some(extra)) = (block, extra) {
            let data = ProviderData {
                provider: self.origin.provider.clone(),
                model: self.model.clone(),
                data: json!({"extra_content": extra}),
            };
            out.push(StreamEvent::Attach { index, data });
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        let stop = match reason.to_ascii_lowercase().as_str() {
            "stop" | "end_turn" | "eos" | "eos_token" if self.refused => {
                Stop::Answer(StopReason::Refusal)
            }
            "stop" | "end_turn" | "eos" | "eos_token" => Stop::Answer(StopReason::EndTurn),
            "stop_sequence" => Stop::Answer(StopReason::StopSequence),
            "length" | "max_tokens" | "max_output_tokens" => Stop::Answer(StopReason::MaxTokens),
            "tool_calls" | "tool_call" | "tool_use" => Stop::Answer(StopReason::ToolUse),
            "content_filter" | "safety" | "refusal" => Stop::Answer(StopReason::Refusal),
            "model_context_window_exceeded" | "context_length_exceeded" => Stop::ContextExceeded,
            word @ ("function_call" | "pause_turn") => Stop::Unsupported(word.to_owned()),
            "error" | "insufficient_system_resource" => {
                return Err(self.origin.failure(
                    ModelFailureKind::Unavailable,
                    &format!("broke the answer off with {reason:?}"),
                ));
            }
            _ => {
                self.unknown = Some(reason.to_owned());
                return Ok(());
            }
        };
        self.stop(stop, out);
        Ok(())
    }

    fn stop(&mut self, stop: Stop, out: &mut Vec<StreamEvent>) {
        self.stopped = true;
        out.push(StreamEvent::Stop(stop));
    }

    /// The server says that this was all.
    fn end(&mut self, out: &mut Vec<StreamEvent>) {
        if self.stopped {
            return;
        }
        let only_text = self.text.is_some() && self.calls.is_empty();
        match self.unknown.take() {
            _ if only_text && self.refused => self.stop(Stop::Answer(StopReason::Refusal), out),
            _ if only_text => self.stop(Stop::Answer(StopReason::EndTurn), out),
            Some(reason) => self.stop(Stop::Unsupported(reason), out),
            None => {}
        }
    }
}

fn flatten(content: Content) -> String {
    match content {
        Content::Text(text) => text,
        Content::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
    }
}

#[cfg(test)]
mod tests;

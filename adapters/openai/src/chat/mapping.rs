//! Turns the stream's chunks into hango's events. Pure: a test is a list of payloads.
//!
//! * A stop is told of as soon as it is known, and reading goes on behind it: usage comes later. If it
//!   shows then that the limit cut a call off, though the server said otherwise, that is the stop.
//! * `[DONE]` ends the stream. If no usable reason came before it, an answer of text alone is taken as
//!   ended; anything else stays incomplete.
//! * An error in the stream is the failure that the same error would be as an HTTP status.

use hango_domain::conversation::{ProviderData, StopReason};
use hango_domain::model::{AnswerNames, ModelFailure, ModelFailureKind, Stop, StreamEvent};
use hango_provider_http::{Dialect, Event, Flow, Origin};
use serde_json::json;

use super::asked::Asked;
use super::calls::Calls;
use super::chunk::{CallDelta, Choice, Chunk, Content, Delta, Few};
use super::finish::{Finish, finish};
use super::markup;
use super::speech::{FIRST_CALL, Member, Speech};
use super::tags::{CALL, CALLED, Piece, Tags};

/// Where the mapping of one answer stands.
#[derive(Debug)]
pub(crate) struct Mapping {
    origin: Origin,
    asked: Asked,
    speech: Speech,
    tags: Tags,
    calls: Calls,
    /// Whether the last that was said is marked as a thought.
    thought: bool,
    refused: bool,
    named: bool,
    output_tokens: u64,
    stop: Option<Stop>,
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
        self.stop.is_some()
    }

    fn held(&self) -> usize {
        let unknown = self.unknown.as_ref().map_or(0, String::len);
        self.speech.held() + self.tags.held() + self.calls.held() + unknown
    }
}

impl Mapping {
    /// Nothing has come yet.
    pub(crate) fn new(origin: Origin, asked: Asked) -> Self {
        Self {
            origin,
            speech: Speech::default(),
            tags: Tags::new(asked.think_tags, asked.calls_in_text),
            calls: Calls::new(FIRST_CALL),
            asked,
            thought: false,
            refused: false,
            named: false,
            output_tokens: 0,
            stop: None,
            unknown: None,
        }
    }

    fn chunk(&mut self, json: &str, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        let chunk: Chunk<'_> = serde_json::from_str(json).map_err(|error| {
            let what = if error.is_data() {
                "an event that is no completion"
            } else {
                "an event that is not JSON"
            };
            self.origin.garbled(what, json)
        })?;
        if let Some(payload) = chunk.error(json) {
            return Err(self.origin.reported(&payload));
        }
        // Every chunk repeats them.
        if !self.named
            && let Some(names) = chunk.names()
        {
            self.named = true;
            out.push(StreamEvent::Named(names));
        }
        let usage = chunk.usage();
        for choice in Few::all(chunk.choices) {
            // Other candidates were not asked for.
            if choice.index.unwrap_or(0) == 0 {
                self.choice(choice, out)?;
            }
        }
        if let Some(usage) = usage {
            self.output_tokens = usage.output_tokens;
            out.push(StreamEvent::Usage(usage));
            self.cut_off(out);
        }
        Ok(())
    }

    fn choice(
        &mut self,
        choice: Choice<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), ModelFailure> {
        let reason = choice.finish_reason.clone();
        if let Some(delta) = choice.addition() {
            self.delta(delta, out)?;
        }
        match reason.as_deref().map(str::trim) {
            None | Some("") => Ok(()),
            Some(reason) => self.finish(reason, out),
        }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        let details = delta.details();
        let is_thought = delta.is_thought();
        // Servers that still send the older form send it beside the calls that replaced it.
        let calls = Few::all(delta.tool_calls);
        if delta.function_call.is_some() && calls.is_empty() {
            let message = "asked for a tool by function_call, which is not supported";
            return Err(self
                .origin
                .failure(ModelFailureKind::UnsupportedStop, message));
        }
        let reasoning_content = delta.reasoning_content.filter(|text| !text.is_empty());
        let reasoning = match (reasoning_content, delta.reasoning) {
            (Some(text), _) => Some((Member::ReasoningContent, text)),
            (None, text) => text.map(|text| (Member::Reasoning, text)),
        };
        let is_said = reasoning.is_some();
        if let Some((member, text)) = reasoning {
            self.speech.thinking(member, text, out);
        }
        if self.speech.details(details, is_said, out).is_err() {
            return Err(self.too_much("reasons too much"));
        }
        if let Some(content) = delta.content {
            self.content(content, is_thought, out)?;
        }
        if let Some(refusal) = delta.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.speech.text(refusal, out);
        }
        for call in calls {
            self.call(call, out)?;
        }
        Ok(())
    }

    /// Gemini's shim marks thoughts, and puts tags around them too; the last one may stand before the text.
    fn content(
        &mut self,
        content: Content,
        is_thought: bool,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), ModelFailure> {
        self.speech.thinking(Member::None, content.thinking, out);
        let mut text = content.text;
        if is_thought {
            self.thought = true;
            text = without(&text, "<thought>", "</thought>");
            self.speech.thinking(Member::None, text, out);
            return Ok(());
        }
        if self.thought && !text.is_empty() {
            self.thought = false;
            text = without(&text, "</thought>", "");
        }
        for piece in self.tags.push(text) {
            self.piece(piece, out)?;
        }
        Ok(())
    }

    fn piece(&mut self, piece: Piece, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        match piece {
            Piece::Text(text) => self.speech.text(text, out),
            Piece::Thinking(text) => self.speech.thinking(Member::None, text, out),
            Piece::Call(markup) => match markup::read(&markup, &self.asked) {
                Some(call) => {
                    let added = self.calls.add(&call.name, call.arguments, out);
                    added.map_err(|_| self.too_much("asks for too much at once"))?;
                }
                None => self.speech.text(format!("{CALL}{markup}{CALLED}"), out),
            },
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: CallDelta<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), ModelFailure> {
        let signature = call.signature();
        let block = self.calls.push(call, out);
        let block = block.map_err(|_| self.too_much("asks for too much at once"))?;
        if let (Some(index), Some(signature)) = (block, signature) {
            let data = ProviderData {
                provider: self.origin.provider.clone(),
                model: self.asked.model.clone(),
                data: json!({"extra_content": {"google": {"thought_signature": signature}}}),
            };
            out.push(StreamEvent::Attach { index, data });
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        let names = AnswerNames::of(None, None, Some(reason));
        out.push(StreamEvent::Named(names));
        match finish(reason) {
            Finish::Stop(Stop::Answer(StopReason::EndTurn)) if self.refused => {
                self.stop(Stop::Answer(StopReason::Refusal), out);
            }
            Finish::Stop(stop) => self.stop(stop, out),
            Finish::Failed(kind, what) => {
                let message = format!("{what} ({reason})");
                return Err(self.origin.failure(kind, &message));
            }
            Finish::Unknown => self.unknown = Some(reason.to_owned()),
        }
        Ok(())
    }

    fn stop(&mut self, stop: Stop, out: &mut Vec<StreamEvent>) {
        self.flush(out);
        if self.stop.is_none() {
            self.speech
                .end(&self.origin.provider, &self.asked.model, out);
        }
        self.stop = Some(stop.clone());
        out.push(StreamEvent::Stop(stop));
        self.cut_off(out);
    }

    /// The limit cut off a call of which the server says that it ended.
    fn cut_off(&mut self, out: &mut Vec<StreamEvent>) {
        let cut = Stop::Answer(StopReason::MaxTokens);
        let ended = [StopReason::EndTurn, StopReason::ToolUse].map(Stop::Answer);
        let is_broken = |name: &str, arguments: &str| !self.asked.is_whole(name, arguments);
        if self.stop.as_ref().is_some_and(|stop| ended.contains(stop))
            && self.asked.is_spent(self.output_tokens)
            && self.calls.any(is_broken)
        {
            self.stop = Some(cut.clone());
            out.push(StreamEvent::Stop(cut));
        }
    }

    /// The server says that this was all.
    fn end(&mut self, out: &mut Vec<StreamEvent>) {
        self.flush(out);
        if self.stop.is_some() {
            return;
        }
        let only_text = self.speech.has_text() && self.calls.is_empty();
        match self.unknown.take() {
            _ if only_text && self.refused => self.stop(Stop::Answer(StopReason::Refusal), out),
            _ if only_text => self.stop(Stop::Answer(StopReason::EndTurn), out),
            Some(reason) => self.stop(Stop::Unsupported(reason), out),
            None => {}
        }
    }

    /// What was held back as the beginning of a tag was none.
    fn flush(&mut self, out: &mut Vec<StreamEvent>) {
        match self.tags.finish() {
            Some(Piece::Text(text)) => self.speech.text(text, out),
            Some(Piece::Thinking(text)) => self.speech.thinking(Member::None, text, out),
            Some(Piece::Call(_)) | None => {}
        }
    }

    fn too_much(&self, what: &str) -> ModelFailure {
        self.origin.failure(ModelFailureKind::Protocol, what)
    }
}

/// A text without what it begins and ends with.
fn without(text: &str, prefix: &str, suffix: &str) -> String {
    let text = text.strip_prefix(prefix).unwrap_or(text);
    text.strip_suffix(suffix).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests;

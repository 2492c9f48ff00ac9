//! Turns the stream's frames into hango's events. Pure: a test is a list of payloads.
//!
//! * A stop is told of as soon as it is known, and only once; usage may still follow, and what ends the
//!   stream need not.
//! * A refusal that brings no text is explained with the words that the server has for people, if any.
//! * An error in the stream is the failure that the same error would be as an HTTP status.

use hango_domain::conversation::StopReason;
use hango_domain::model::{AnswerNames, ModelFailure, Stop, StreamEvent};
use hango_provider_http::{Dialect, Event, Flow, Origin, error_of};
use serde_json::Value;

use crate::bill::Bill;
use crate::blocks::Blocks;
use crate::frame::{End, Frame, StartMessage, Whole, Wrong};

/// Where the mapping of one answer stands.
#[derive(Debug)]
pub(crate) struct Mapping {
    origin: Origin,
    blocks: Blocks,
    bill: Bill,
    stopped: bool,
}

impl Mapping {
    /// Nothing has come yet.
    pub(crate) fn new(origin: Origin, model: impl Into<String>) -> Self {
        Self {
            blocks: Blocks::new(&origin.provider, model.into()),
            origin,
            bill: Bill::default(),
            stopped: false,
        }
    }
}

impl Dialect for Mapping {
    fn event(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Flow, ModelFailure> {
        let data = event.data.trim();
        // Gateways end their streams so, out of a habit from another protocol.
        if data == "[DONE]" {
            return Ok(Flow::Done);
        }
        if data.is_empty() {
            return Ok(Flow::More);
        }
        let payload = self.origin.read("an event", data)?;
        let frame = Frame::of(event.name.as_deref(), payload);
        if let Ok(Frame::Unknown(kind)) = &frame {
            self.origin.passes_over(kind, data.len());
        }
        frame
            .and_then(|frame| self.take(frame, out))
            .map_err(|wrong| self.failure(wrong, "an event", data))
    }

    fn whole(&mut self, body: &str, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        let payload = self.origin.read("a document", body)?;
        self.take_whole(payload, out)
            .map_err(|wrong| self.failure(wrong, "a document", body))
    }

    /// It was all, if it gave a reason; that was told.
    fn closed(&mut self, _: &mut Vec<StreamEvent>) {}

    fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn held(&self) -> usize {
        self.blocks.held()
    }
}

impl Mapping {
    fn take(&mut self, frame: Frame, out: &mut Vec<StreamEvent>) -> Result<Flow, Wrong> {
        match frame {
            Frame::Start(StartMessage { id, model, usage }) => {
                named(id.as_deref(), model.as_deref(), out);
                self.costs(usage, out);
            }
            Frame::BlockStart { index, block } => {
                self.blocks.begin(index, block, out)?;
                self.blocks.hold_little()?;
            }
            Frame::BlockDelta { index, delta } => self.blocks.delta(index, delta, out)?,
            Frame::BlockStop { index } => self.blocks.end(index, out)?,
            Frame::Delta { end, usage } => {
                self.costs(usage, out);
                self.ends(&end, out)?;
            }
            Frame::Stop => return Ok(Flow::Done),
            Frame::Nothing | Frame::Unknown(_) => {}
        }
        Ok(Flow::More)
    }

    fn take_whole(&mut self, payload: Value, out: &mut Vec<StreamEvent>) -> Result<(), Wrong> {
        if error_of(&payload).is_some() {
            return Err(Wrong::Reported(payload));
        }
        let whole: Result<Whole, _> = serde_json::from_value(payload);
        let whole = whole.map_err(|_| Wrong::Corrupt("that is no message"))?;
        named(whole.id.as_deref(), whole.model.as_deref(), out);
        for (index, block) in (0..).zip(whole.content) {
            self.blocks.begin(index, block, out)?;
            self.blocks.end(index, out)?;
        }
        self.costs(whole.usage, out);
        self.ends(&whole.end, out)
    }

    fn costs(&mut self, usage: Option<Value>, out: &mut Vec<StreamEvent>) {
        if let Some(usage) = usage.filter(Value::is_object) {
            self.bill.take(&usage);
            out.push(StreamEvent::Usage(self.bill.usage()));
        }
    }

    fn ends(&mut self, end: &End, out: &mut Vec<StreamEvent>) -> Result<(), Wrong> {
        let reason = end.stop_reason.as_deref().unwrap_or_default();
        if reason.is_empty() || self.stopped {
            return Ok(());
        }
        self.blocks.end_all(out)?;
        let stop = stop(reason);
        if stop == Stop::Answer(StopReason::Refusal)
            && !self.blocks.speaks()
            && let Some(explanation) = end.explanation()
        {
            self.blocks.say(explanation, out);
        }
        self.stopped = true;
        let names = AnswerNames::of(None, None, Some(reason));
        out.push(StreamEvent::Named(names));
        out.push(StreamEvent::Stop(stop));
        Ok(())
    }

    fn failure(&self, wrong: Wrong, what: &str, text: &str) -> ModelFailure {
        match wrong {
            Wrong::Corrupt(how) => self.origin.garbled(&format!("{what} {how}"), text),
            Wrong::Reported(payload) => self.origin.reported(&payload),
        }
    }
}

fn named(id: Option<&str>, model: Option<&str>, out: &mut Vec<StreamEvent>) {
    if id.is_some() || model.is_some() {
        let names = AnswerNames::of(id, model, None);
        out.push(StreamEvent::Named(names));
    }
}

fn stop(reason: &str) -> Stop {
    Stop::Answer(match reason {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::PauseTurn,
        "model_context_window_exceeded" => return Stop::ContextExceeded,
        unknown => return Stop::Unsupported(unknown.to_owned()),
    })
}

#[cfg(test)]
mod tests;

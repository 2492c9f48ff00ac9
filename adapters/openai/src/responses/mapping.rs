//! Turns the stream's frames into hango's events. Pure: a test is a list of payloads.
//!
//! * Only `response.completed` ends an answer well. One that is incomplete was cut off, by its limit or
//!   by a filter: what a filter cut off asks for no tool.
//! * A stream that ends without a last word is broken off, whatever came before, `[DONE]` too.
//! * An error in the stream is the failure that the same error would be as an HTTP status.

use hango_domain::conversation::{StopReason, Usage};
use hango_domain::model::{AnswerNames, ModelFailure, Stop, StreamEvent};
use hango_provider_http::{Dialect, Event, Flow, Origin};
use serde_json::Value;

use super::frame::{Frame, Response, Status, Wrong};
use super::items::Items;
use super::report;

/// Where the mapping of one answer stands.
#[derive(Debug)]
pub(crate) struct Mapping {
    origin: Origin,
    items: Items,
    stopped: bool,
}

impl Mapping {
    /// Nothing has come yet.
    pub(crate) fn new(origin: Origin, model: impl Into<String>) -> Self {
        Self {
            items: Items::new(&origin.provider, model.into()),
            origin,
            stopped: false,
        }
    }
}

impl Dialect for Mapping {
    fn event(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Flow, ModelFailure> {
        self.read(event, out)
            .map_err(|wrong| self.failure(wrong, "an event", &event.data))
    }

    fn whole(&mut self, body: &str, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        self.read_whole(body, out)
            .map_err(|wrong| self.failure(wrong, "a document", body))
    }

    /// It was not all: the last word is missing.
    fn closed(&mut self, _: &mut Vec<StreamEvent>) {}

    fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn held(&self) -> usize {
        self.items.held()
    }
}

impl Mapping {
    fn read(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Flow, Wrong> {
        match Frame::read(event.name.as_deref(), &event.data)? {
            Frame::Begins { index, item } => self.items.begin(index, item)?,
            Frame::Adds(addition) => self.items.add(addition, out)?,
            Frame::Arguments(done) => self.items.arguments(done)?,
            Frame::Ends { index, item } => self.items.end(index, item, out)?,
            Frame::Over(status, response) => {
                self.ends(status, &response, out)?;
                return Ok(Flow::Done);
            }
            Frame::Nothing => {}
            Frame::Unknown(kind) => self.origin.passes_over(&kind, event.data.len()),
        }
        Ok(Flow::More)
    }

    fn read_whole(&mut self, body: &str, out: &mut Vec<StreamEvent>) -> Result<(), Wrong> {
        let (status, response) = Response::read(body)?;
        self.ends(status, &response, out)
    }

    fn ends(
        &mut self,
        status: Status,
        response: &Response<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Wrong> {
        let names = response.names();
        if names != AnswerNames::default() {
            out.push(StreamEvent::Named(names));
        }
        if let Some(wire) = response.usage() {
            out.push(StreamEvent::Usage(usage(&wire)));
        }
        let stop = match (status, response.reason()) {
            // What it had said so far may be half of something.
            (Status::Failed, _) => return Err(Wrong::Reported(response.report())),
            (Status::Completed, _) => Stop::Answer(StopReason::EndTurn),
            (Status::Incomplete, "max_output_tokens" | "max_tokens" | "length") => {
                Stop::Answer(StopReason::MaxTokens)
            }
            (Status::Incomplete, "content_filter") => Stop::Answer(StopReason::Refusal),
            (Status::Incomplete, unknown) => Stop::Unsupported(unknown.to_owned()),
        };
        self.items.settle(response.output(), out)?;
        let stop = match stop {
            Stop::Answer(StopReason::EndTurn) if self.items.refuses() => {
                Stop::Answer(StopReason::Refusal)
            }
            stop => stop,
        };
        let is_filtered = status == Status::Incomplete && stop == Stop::Answer(StopReason::Refusal);
        if !is_filtered {
            self.items.tell_calls(out);
        }
        self.stopped = true;
        out.push(StreamEvent::Stop(stop));
        Ok(())
    }

    fn failure(&self, wrong: Wrong, what: &str, text: &str) -> ModelFailure {
        match wrong {
            Wrong::Corrupt(how) => self.origin.garbled(&format!("{what} {how}"), text),
            Wrong::Reported(payload) => report::failure(&self.origin, &payload),
        }
    }
}

/// Tokens, whatever of them the server counted. An answer is never lost over its bill.
fn usage(wire: &Value) -> Usage {
    let count = |pointer: &str| wire.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        input_tokens: count("/input_tokens"),
        output_tokens: count("/output_tokens"),
        cache_read_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_tokens: count("/input_tokens_details/cache_write_tokens"),
        estimated: false,
    }
}

#[cfg(test)]
mod tests;

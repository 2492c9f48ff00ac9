//! Puts the answer's blocks together out of the frames that tell of them.
//!
//! * A block is told of as it comes, and what belongs to it as a whole when it ends. One that its server
//!   forgot to end has ended when another begins at its index, or when the answer does.
//! * Arguments are passed on as text and never read here; those that stand in a call's beginning count if
//!   nothing comes behind it.
//! * Members that hango has no word for are attached to their block. A block that it has no word for is
//!   kept whole: what a delta brings is put into it, and arguments of a server's own tool are its input.
//!   If those are cut off, the block is none.
//! * A delta of an unknown kind says nothing of a block that hango knows.
//! * What waits here for the end of its block weighs half a MiB at most.

use std::collections::BTreeMap;
use std::mem;

use hango_domain::conversation::ProviderData;
use hango_domain::json;
use hango_domain::model::StreamEvent;
use serde_json::{Map, Value};

use crate::frame::Wrong;
use crate::members::{added, is_nothing, kind, length_of, merge, optional, required, with_input};

/// How many blocks may be open at once; the protocol has one.
const MAX_OPEN: usize = 64;

/// What all open blocks may hold back, as [`json::weight`] counts it.
const MAX_HELD: usize = 512 << 10;

const HOLDS_TOO_MUCH: Wrong =
    Wrong::Corrupt("that brings more than 512 KiB of what waits for the end of a block");

/// The blocks of one answer.
#[derive(Debug)]
pub(crate) struct Blocks {
    provider: String,
    model: String,
    /// By the server's index.
    open: BTreeMap<u32, Open>,
    /// The least index that was not given to a block yet.
    next: u32,
    speaks: bool,
}

/// A block that has not ended.
#[derive(Debug)]
struct Open {
    at: u32,
    kind: Kind,
    /// Whether it was told of.
    is_told: bool,
    attached: Map<String, Value>,
    /// What is held back of it.
    weight: usize,
}

#[derive(Debug)]
enum Kind {
    Text,
    Thinking,
    RedactedThinking,
    Call {
        /// The arguments of its beginning.
        input: Value,
        has_delta: bool,
    },
    /// One that hango has no word for.
    Kept {
        block: Map<String, Value>,
        input: String,
    },
}

impl Blocks {
    /// None yet, of an answer of that provider as that model.
    pub(crate) fn new(provider: &str, model: String) -> Self {
        Self {
            provider: provider.to_owned(),
            model,
            open: BTreeMap::new(),
            next: 0,
            speaks: false,
        }
    }

    /// Whether text came.
    pub(crate) fn speaks(&self) -> bool {
        self.speaks
    }

    /// Whether all that is held back is within its limit.
    pub(crate) fn hold_little(&self) -> Result<(), Wrong> {
        self.hold(0)
    }

    /// What all open blocks hold back, as it is counted.
    pub(crate) fn held(&self) -> usize {
        self.open.values().map(|open| open.weight).sum()
    }

    fn hold(&self, more: usize) -> Result<(), Wrong> {
        if self.held().saturating_add(more) > MAX_HELD {
            return Err(HOLDS_TOO_MUCH);
        }
        Ok(())
    }

    /// A block begins.
    pub(crate) fn begin(
        &mut self,
        index: u32,
        mut block: Map<String, Value>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Wrong> {
        self.end(index, out)?;
        if self.open.len() == MAX_OPEN {
            return Err(Wrong::Corrupt("that begins too many blocks at once"));
        }
        let at = index.max(self.next);
        self.next = at.saturating_add(1);
        let mut open = Open {
            at,
            kind: Kind::Text,
            is_told: false,
            attached: Map::new(),
            weight: 0,
        };
        match kind(&block)?.as_str() {
            "text" => open.text(optional(&mut block, "text")?, out),
            "thinking" => {
                open.kind = Kind::Thinking;
                open.thinking(optional(&mut block, "thinking")?, out);
                open.signature(optional(&mut block, "signature")?, out);
            }
            "redacted_thinking" => {
                open.kind = Kind::RedactedThinking;
                let data = required(&mut block, "data")?;
                out.push(StreamEvent::RedactedThinking { index: at, data });
            }
            "tool_use" => {
                open.kind = Kind::Call {
                    input: block.remove("input").unwrap_or_default(),
                    has_delta: false,
                };
                let id = optional(&mut block, "id")?;
                let name = required(&mut block, "name")?;
                let index = at;
                out.push(StreamEvent::ToolUse { index, id, name });
            }
            _ => {
                open.kind = Kind::Kept {
                    block: mem::take(&mut block),
                    input: String::new(),
                };
            }
        }
        self.speaks |= matches!(open.kind, Kind::Text) && open.is_told;
        block.remove("type");
        block.retain(|_, value| !is_nothing(value));
        open.weight = open.kind.weight() + json::weight_of_members(&block);
        open.attached = block;
        self.open.insert(index, open);
        Ok(())
    }

    /// More of a block.
    pub(crate) fn delta(
        &mut self,
        index: u32,
        mut delta: Map<String, Value>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Wrong> {
        let Some(open) = self.open.get(&index) else {
            return Err(Wrong::Corrupt("of a block that never began"));
        };
        let kind = kind(&delta)?;
        let more = open.kept_of(&kind, &delta);
        if more > 0 {
            self.hold(more)?;
        }
        let Some(open) = self.open.get_mut(&index) else {
            return Ok(());
        };
        open.weight += more;
        match (&mut open.kind, kind.as_str()) {
            (Kind::Kept { input, .. }, "input_json_delta") => {
                input.push_str(&required(&mut delta, "partial_json")?);
            }
            (Kind::Kept { block, .. }, _) => merge(block, delta),
            (Kind::Text, "text_delta") => {
                open.text(required(&mut delta, "text")?, out);
                self.speaks |= open.is_told;
            }
            (Kind::Text, "citations_delta") => open.cite(delta.remove("citation"))?,
            (Kind::Thinking, "thinking_delta") => {
                open.thinking(required(&mut delta, "thinking")?, out);
            }
            (Kind::Thinking, "signature_delta") => {
                open.signature(required(&mut delta, "signature")?, out);
            }
            (Kind::Call { has_delta, .. }, "input_json_delta") => {
                let json = required(&mut delta, "partial_json")?;
                if !json.is_empty() {
                    *has_delta = true;
                    let index = open.at;
                    out.push(StreamEvent::ToolInput { index, json });
                }
            }
            (
                _,
                "text_delta" | "citations_delta" | "thinking_delta" | "signature_delta"
                | "input_json_delta",
            ) => return Err(Wrong::Corrupt("of another kind of block")),
            (_, _) => {}
        }
        Ok(())
    }

    /// A block has ended, if it had begun.
    pub(crate) fn end(&mut self, index: u32, out: &mut Vec<StreamEvent>) -> Result<(), Wrong> {
        match self.open.remove(&index) {
            Some(open) => self.close(open, out),
            None => Ok(()),
        }
    }

    /// Every block has ended.
    pub(crate) fn end_all(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Wrong> {
        for open in mem::take(&mut self.open).into_values() {
            self.close(open, out)?;
        }
        Ok(())
    }

    /// A block of text that is not the model's.
    pub(crate) fn say(&mut self, text: &str, out: &mut Vec<StreamEvent>) {
        let (index, text) = (self.next, text.to_owned());
        out.push(StreamEvent::Text { index, text });
    }

    fn close(&self, open: Open, out: &mut Vec<StreamEvent>) -> Result<(), Wrong> {
        let index = open.at;
        let attaches = match open.kind {
            Kind::Text => open.is_told && !open.attached.is_empty(),
            // It says whose reasoning this is.
            Kind::Thinking => open.is_told,
            Kind::RedactedThinking => true,
            Kind::Call { input, has_delta } => {
                if !has_delta && !input.is_null() {
                    let json = json::text(&input);
                    out.push(StreamEvent::ToolInput { index, json });
                }
                !open.attached.is_empty()
            }
            Kind::Kept { block, input } => {
                let block = with_input(block, &input, 2 * MAX_HELD);
                if let Some(block) = block.map_err(|_| HOLDS_TOO_MUCH)? {
                    let data = self.own(block);
                    out.push(StreamEvent::Provider { index, data });
                }
                false
            }
        };
        if attaches {
            let data = self.own(open.attached);
            out.push(StreamEvent::Attach { index, data });
        }
        Ok(())
    }

    fn own(&self, members: Map<String, Value>) -> ProviderData {
        ProviderData {
            provider: self.provider.clone(),
            model: self.model.clone(),
            data: Value::Object(members),
        }
    }
}

impl Open {
    /// What of a delta is held back, as it is counted.
    fn kept_of(&self, kind: &str, delta: &Map<String, Value>) -> usize {
        let weight_of = |name: &str| delta.get(name).map_or(0, json::weight);
        match (&self.kind, kind) {
            (Kind::Text, "citations_delta") => weight_of("citation"),
            (Kind::Kept { .. }, "input_json_delta") => length_of(delta.get("partial_json")),
            (Kind::Kept { block, .. }, _) => added(block, delta),
            (Kind::Text | Kind::Thinking | Kind::RedactedThinking | Kind::Call { .. }, _) => 0,
        }
    }

    fn text(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.is_told = true;
            let index = self.at;
            out.push(StreamEvent::Text { index, text });
        }
    }

    fn thinking(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.is_told = true;
            let index = self.at;
            out.push(StreamEvent::Thinking { index, text });
        }
    }

    fn signature(&mut self, signature: String, out: &mut Vec<StreamEvent>) {
        if !signature.is_empty() {
            self.is_told = true;
            let index = self.at;
            out.push(StreamEvent::Signature { index, signature });
        }
    }

    fn cite(&mut self, citation: Option<Value>) -> Result<(), Wrong> {
        let citation = citation.ok_or(Wrong::Corrupt("without its citation"))?;
        let citations = self.attached.entry("citations");
        match citations.or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(citations) => citations.push(citation),
            other => *other = Value::Array(vec![citation]),
        }
        Ok(())
    }
}

impl Kind {
    fn weight(&self) -> usize {
        match self {
            Self::Text | Self::Thinking | Self::RedactedThinking => 0,
            Self::Call { input, .. } => json::weight(input),
            Self::Kept { block, input } => json::weight_of_members(block) + input.len(),
        }
    }
}

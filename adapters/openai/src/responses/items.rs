//! Puts the answer's items together out of the frames that tell of them.
//!
//! * Items of one kind are told apart by their number, else by their id: some servers send only one of the
//!   two, some the same number or the same id for all, or another id in each event.
//! * Text and reasoning are passed on as they come, a call when the answer is over: only then is it known
//!   whether it counts, and what a later event says of its arguments wins over the fragments before.
//! * An item is whole when it ends. One whose end got lost is taken from the answer that the last event
//!   repeats; if that does not repeat it, what came is all.
//! * What hango has no word for is attached to its block, and an item of another kind is a block of its
//!   own. Reasoning that says nothing to people is kept too: what the server wants back is its signature.

use hango_domain::accumulator::MAX_ANSWER_BYTES;
use hango_domain::conversation::ProviderData;
use hango_domain::json::{self, Unreadable};
use hango_domain::model::StreamEvent;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::frame::{Addition, Arguments, Head, MAX_ITEMS, Piece, Wrong};
use super::item::{Item, Kind, Whole};

/// The items of one answer.
#[derive(Debug)]
pub(crate) struct Items {
    provider: String,
    model: String,
    /// In the order of their beginnings.
    all: Vec<Item>,
    /// How many bytes are held back of them.
    held: usize,
    refuses: bool,
}

impl Items {
    /// None yet, of an answer of that provider as that model.
    pub(crate) fn new(provider: &str, model: String) -> Self {
        Self {
            provider: provider.to_owned(),
            model,
            all: Vec::new(),
            held: 0,
            refuses: false,
        }
    }

    /// Whether the model refuses.
    pub(crate) fn refuses(&self) -> bool {
        self.refuses
    }

    /// How many bytes are held back of them.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// An item begins.
    pub(crate) fn begin(&mut self, index: Option<u32>, head: Head) -> Result<(), Wrong> {
        let kind = Kind::named(&head.kind);
        if self.named(head.ids(), index, &kind).is_none() {
            self.held += head.bytes();
            let at = self.open(index, kind)?;
            self.all[at].learn(head);
        }
        Ok(())
    }

    /// More of an item comes.
    pub(crate) fn add(
        &mut self,
        addition: Addition,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Wrong> {
        self.refuses |= addition.what == Piece::Refusal;
        let kind = Kind::of(addition.what);
        let at = self.place(addition.index, &addition.id, kind)?;
        if !self.all[at].is_whole {
            if addition.what == Piece::Arguments {
                self.held += addition.more.len();
            }
            self.all[at].add(addition, out);
        }
        Ok(())
    }

    /// All of a call's arguments came.
    pub(crate) fn arguments(&mut self, done: Arguments) -> Result<(), Wrong> {
        let id = done.id.unwrap_or_default();
        let at = self.place(done.index, &id, Kind::of(Piece::Arguments))?;
        let item = &mut self.all[at];
        if let Kind::Call(call) = &mut item.kind
            && !item.is_whole
            && !done.json.is_empty()
        {
            self.held -= call.arguments.len();
            call.arguments = done.json;
            self.held += call.arguments.len();
        }
        Ok(())
    }

    /// An item has ended.
    pub(crate) fn end(
        &mut self,
        index: Option<u32>,
        item: &RawValue,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Wrong> {
        let head = Head::of(item)?;
        let kind = Kind::named(&head.kind);
        let known = self.known(head.ids(), index, &kind);
        self.close(known, index, head, item, out)
    }

    /// Takes what is missing from the answer as the last event repeats it.
    pub(crate) fn settle(
        &mut self,
        output: &[&RawValue],
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Wrong> {
        for (index, item) in (0..).zip(output) {
            let head = Head::of(item)?;
            let known = self.repeated(index, &head);
            self.close(known, Some(index), head, item, out)?;
        }
        Ok(())
    }

    /// Tells of the calls. One without a name was none.
    pub(crate) fn tell_calls(&mut self, out: &mut Vec<StreamEvent>) {
        for Item { at, id, kind, .. } in std::mem::take(&mut self.all) {
            let index = at;
            let Kind::Call(call) = kind else { continue };
            if call.name.is_empty() {
                continue;
            }
            // What a server calls by one id alone, it knows by that one.
            let id = if call.id.is_empty() { id } else { call.id };
            let (name, json) = (call.name, call.arguments);
            out.push(StreamEvent::ToolUse { index, id, name });
            if !json.is_empty() {
                out.push(StreamEvent::ToolInput { index, json });
            }
            if let Some(rest) = call.rest {
                let data = self.own(rest);
                out.push(StreamEvent::Attach { index, data });
            }
        }
    }

    fn close(
        &mut self,
        known: Option<usize>,
        index: Option<u32>,
        head: Head,
        whole: &RawValue,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Wrong> {
        let at = match known {
            Some(at) if self.all[at].is_whole => return Ok(()),
            Some(at) => at,
            None => self.open(index, Kind::named(&head.kind))?,
        };
        self.held += head.bytes();
        let whole = members(whole)?;
        let item = &mut self.all[at];
        item.is_whole = true;
        item.learn(head);
        let index = item.at;
        match &mut item.kind {
            Kind::Message(told) => {
                let Whole {
                    text,
                    refuses,
                    rest,
                    ..
                } = Whole::message(whole)?;
                let is_told = !told.is_nothing();
                self.refuses |= refuses;
                if is_told || !text.is_empty() {
                    if !is_told {
                        out.push(StreamEvent::Text { index, text });
                    }
                    let data = self.own(rest);
                    out.push(StreamEvent::Attach { index, data });
                }
            }
            Kind::Reasoning(told) => {
                let Whole {
                    text,
                    signature,
                    rest,
                    ..
                } = Whole::reasoning(whole)?;
                let is_told = !told.is_nothing();
                if is_told || !text.is_empty() || !signature.is_empty() {
                    if !is_told && !text.is_empty() {
                        out.push(StreamEvent::Thinking { index, text });
                    }
                    if !signature.is_empty() {
                        out.push(StreamEvent::Signature { index, signature });
                    }
                    let data = self.own(rest);
                    out.push(StreamEvent::Attach { index, data });
                }
            }
            Kind::Call(call) => {
                self.held -= call.arguments.len();
                call.complete(whole);
                let rest = call.rest.as_ref().map_or(0, json::weight_of_members);
                self.held += call.arguments.len() + rest;
            }
            Kind::Kept => {
                let data = self.own(whole);
                out.push(StreamEvent::Provider { index, data });
            }
        }
        Ok(())
    }

    /// The item that an event is about; a new one if its beginning got lost.
    fn place(&mut self, index: Option<u32>, id: &str, kind: Kind) -> Result<usize, Wrong> {
        let known = if index.is_none() && id.is_empty() {
            let is_it = |item: &Item| !item.is_whole && item.kind.is_like(&kind);
            self.all.iter().rposition(is_it)
        } else {
            self.known([id, ""], index, &kind)
        };
        if let Some(at) = known {
            return Ok(at);
        }
        self.held += id.len();
        let at = self.open(index, kind)?;
        id.clone_into(&mut self.all[at].id);
        Ok(at)
    }

    /// The item of that number which has not ended, else the one of such an id.
    fn known(&self, ids: [&str; 2], index: Option<u32>, kind: &Kind) -> Option<usize> {
        let is_it = |item: &Item| {
            !item.is_whole && item.index == index && index.is_some() && item.kind.is_like(kind)
        };
        let numbered = self.all.iter().rposition(is_it);
        numbered.or_else(|| self.named(ids, index, kind))
    }

    /// The item of such an id, unless it has another number.
    fn named(&self, ids: [&str; 2], index: Option<u32>, kind: &Kind) -> Option<usize> {
        self.all.iter().rposition(|item| {
            let has_other = item.index.is_some() && index.is_some() && item.index != index;
            item.kind.is_like(kind) && !has_other && ids.iter().any(|id| item.is_named(id))
        })
    }

    /// The item that has that place in the whole answer. Where ids change, its place tells.
    fn repeated(&self, index: u32, head: &Head) -> Option<usize> {
        let kind = Kind::named(&head.kind);
        self.named(head.ids(), None, &kind).or_else(|| {
            let is_it = |item: &Item| item.at == index && item.kind.is_like(&kind);
            self.all.iter().position(is_it)
        })
    }

    fn open(&mut self, index: Option<u32>, kind: Kind) -> Result<usize, Wrong> {
        if self.all.len() == MAX_ITEMS {
            return Err(Wrong::Corrupt("that begins too many items"));
        }
        let free = self.all.iter().map(|item| item.at.saturating_add(1));
        let free = free.max().unwrap_or(0);
        let is_free = |at: &u32| self.all.iter().all(|item| item.at != *at);
        self.all.push(Item {
            at: index.filter(is_free).unwrap_or(free),
            index,
            id: String::new(),
            kind,
            is_whole: false,
        });
        Ok(self.all.len() - 1)
    }

    fn own(&self, members: Map<String, Value>) -> ProviderData {
        ProviderData {
            provider: self.provider.clone(),
            model: self.model.clone(),
            data: Value::Object(members),
        }
    }
}

const TOO_LARGE: Wrong = Wrong::Corrupt("that makes the answer too large");

/// The members of an item, which is kept.
fn members(item: &RawValue) -> Result<Map<String, Value>, Wrong> {
    match json::read(item.get(), MAX_ANSWER_BYTES) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) | Err(Unreadable::NotJson) => Err(Wrong::Corrupt("of an item that is none")),
        Err(Unreadable::TooLarge(_)) => Err(TOO_LARGE),
    }
}

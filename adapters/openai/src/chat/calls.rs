//! Tells the fragments of several tool calls apart.
//!
//! The protocol numbers calls with `index`; servers that claim to speak it forget the number, give the
//! same one to every call, or change a call's id in each fragment. The rules, in their order:
//!
//! 1. A known id is its call, unless it comes with another index and a name again.
//! 2. A new id with a name opens a call. A new id without a name does so where there is no call yet;
//!    else it continues the call at its index.
//! 3. Without an id, a fragment continues the call at its index, unless it names another function. At an
//!    index without a call it opens one if it has a name, else it continues the latest.
//! 4. Without an index, an id or a further name opens a call; anything else continues the latest.
//!
//! A call is told of when its name is known; what came before waits. One that never gets a name was
//! none. The first name stands, repeated ones are passed over.

use std::mem;

use hango_domain::model::StreamEvent;

use super::chunk::{CallDelta, FunctionDelta};

/// How many calls one answer may hold, so that looking one up stays cheap.
const MAX_CALLS: usize = 256;

/// How many bytes of arguments are kept, to look at when the answer has ended. No answer that a limit cut
/// off has more.
const MAX_KEPT: usize = 512 << 10;

/// The calls of one answer, in the order of their first fragments.
#[derive(Debug)]
pub(crate) struct Calls {
    first_block: u32,
    all: Vec<Call>,
    /// How many bytes of arguments were kept; `None` if there were too many.
    kept: Option<usize>,
}

#[derive(Debug)]
struct Call {
    /// The server's number of it; the last one stands.
    index: Option<u64>,
    /// Empty while none came.
    id: String,
    /// Empty while none came.
    name: String,
    /// Arguments that wait for the name.
    waiting: String,
    /// Whether arguments came.
    has_input: bool,
    /// All of them.
    kept: String,
}

/// The answer asks for more than anybody would execute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooMuch;

impl Calls {
    /// No calls yet; the first one's block will have this number.
    pub(crate) fn new(first_block: u32) -> Self {
        Self {
            first_block,
            all: Vec::new(),
            kept: Some(0),
        }
    }

    /// Whether there is none, complete or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many bytes they hold.
    pub(crate) fn held(&self) -> usize {
        let texts = |call: &Call| {
            let held = [&call.id, &call.name, &call.waiting, &call.kept];
            held.map(String::len)
        };
        self.all.iter().flat_map(texts).sum()
    }

    /// Takes in a fragment. Returns the block that it belongs to, once that call is told of.
    pub(crate) fn push(
        &mut self,
        delta: CallDelta<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<Option<u32>, TooMuch> {
        let id = delta.id.unwrap_or_default();
        let arguments = delta.function.as_ref().map(FunctionDelta::arguments);
        let name = delta.function.and_then(|function| function.name);
        let name = name.unwrap_or_default();
        let (id, name) = (id.trim(), name.trim());

        let at = match self.find(delta.index, id, name) {
            Some(at) => at,
            None => self.open()?,
        };
        let block = self.block(at);
        let arguments = self.keep(at, arguments.unwrap_or_default());
        let call = &mut self.all[at];
        call.index = delta.index.or(call.index);
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        call.named(block, name, out);
        call.input(block, arguments, out);
        Ok((!call.name.is_empty()).then_some(block))
    }

    /// Takes in a call that came whole and has no id.
    pub(crate) fn add(
        &mut self,
        name: &str,
        arguments: String,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), TooMuch> {
        let at = self.open()?;
        let block = self.block(at);
        let arguments = self.keep(at, arguments);
        self.all[at].named(block, name, out);
        self.all[at].input(block, arguments, out);
        Ok(())
    }

    /// Whether one of the calls, by its name and its arguments, is such a one; not if they were too long.
    pub(crate) fn any(&self, is_such: impl Fn(&str, &str) -> bool) -> bool {
        let mut calls = self.all.iter().filter(|call| !call.name.is_empty());
        self.kept.is_some() && calls.any(|call| is_such(&call.name, &call.kept))
    }

    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let known = |call: &Call| !id.is_empty() && call.id == id;
        if let Some(at) = self.all.iter().rposition(known) {
            let call = &self.all[at];
            let moved = index.is_some() && index != call.index;
            let again = moved && !name.is_empty() && !call.name.is_empty();
            return (!again).then_some(at);
        }
        let latest = self.all.len().checked_sub(1);
        let Some(index) = index else {
            let unnamed = |at: &usize| name.is_empty() || self.all[*at].name.is_empty();
            return latest.filter(|at| id.is_empty() && unnamed(at));
        };
        match self.all.iter().rposition(|call| call.index == Some(index)) {
            Some(at) => self.all[at].goes_on_with(id, name).then_some(at),
            None => latest.filter(|_| id.is_empty() && name.is_empty()),
        }
    }

    /// Keeps more of a call's arguments, and hands them on.
    fn keep(&mut self, at: usize, mut more: String) -> String {
        let call = &mut self.all[at];
        // No object begins so: it is a server's word for "none", or for "not yet".
        if !call.has_input && more.starts_with("null") {
            more.drain(.."null".len());
        }
        call.has_input |= !more.is_empty();
        let kept = self.kept.map(|kept| kept + more.len());
        self.kept = kept.filter(|kept| *kept <= MAX_KEPT);
        if self.kept.is_some() {
            call.kept.push_str(&more);
        }
        more
    }

    fn open(&mut self) -> Result<usize, TooMuch> {
        if self.all.len() == MAX_CALLS {
            return Err(TooMuch);
        }
        self.all.push(Call {
            index: None,
            id: String::new(),
            name: String::new(),
            waiting: String::new(),
            has_input: false,
            kept: String::new(),
        });
        Ok(self.all.len() - 1)
    }

    fn block(&self, at: usize) -> u32 {
        let at = u32::try_from(at).expect("fewer calls than MAX_CALLS");
        self.first_block + at
    }
}

impl Call {
    /// Whether a fragment at this call's index belongs to it, though its id is none or a new one.
    fn goes_on_with(&self, id: &str, name: &str) -> bool {
        let repeated = self.name == name && (id.is_empty() || self.id.is_empty());
        name.is_empty() || self.name.is_empty() || repeated
    }

    /// The first name stands, and tells of the call.
    fn named(&mut self, block: u32, name: &str, out: &mut Vec<StreamEvent>) {
        if self.name.is_empty() && !name.is_empty() {
            name.clone_into(&mut self.name);
            out.push(StreamEvent::ToolUse {
                index: block,
                id: self.id.clone(),
                name: self.name.clone(),
            });
        }
    }

    fn input(&mut self, block: u32, more: String, out: &mut Vec<StreamEvent>) {
        if self.waiting.is_empty() {
            self.waiting = more;
        } else {
            self.waiting.push_str(&more);
        }
        if self.name.is_empty() {
            return;
        }
        if !self.waiting.is_empty() {
            out.push(StreamEvent::ToolInput {
                index: block,
                json: mem::take(&mut self.waiting),
            });
        }
    }
}

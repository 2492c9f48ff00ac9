//! Reasoning that a server wants back as it came, in a list of details.
//!
//! A stream brings a detail in fragments, and a signature covers the whole: those that follow each other
//! with the same type and number are one. Sent back in fragments, the server refuses them.

use serde_json::Value;

use super::chunk::Detail;

/// How many details an answer may have.
const MAX_DETAILS: usize = 256;

/// The details of one answer.
#[derive(Debug, Default)]
pub(crate) struct Details {
    list: Vec<Detail>,
    bytes: usize,
}

/// They are more than anybody would send back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooMuch;

impl Details {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes in the next one.
    pub(crate) fn push(&mut self, detail: Detail) -> Result<(), TooMuch> {
        self.bytes += bytes(&detail);
        let is_full = self.list.len() == MAX_DETAILS;
        match self.list.last_mut() {
            Some(last) if continues(last, &detail) => {
                extend(&mut last.text, detail.text);
                extend(&mut last.summary, detail.summary);
                last.signature = detail.signature.or(last.signature.take());
                last.id = detail.id.or(last.id.take());
                last.format = detail.format.or(last.format.take());
            }
            Some(_) if is_full => return Err(TooMuch),
            Some(_) | None => self.list.push(detail),
        }
        Ok(())
    }

    /// How many bytes they have.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of them, in their order.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(&self.list).unwrap_or_default()
    }
}

/// What it says to people.
pub(crate) fn words(detail: &Detail) -> &str {
    let words = detail.text.as_deref().or(detail.summary.as_deref());
    words.unwrap_or_default()
}

/// Encrypted ones come whole.
fn continues(last: &Detail, next: &Detail) -> bool {
    let numbered = next.index.is_some() && next.index == last.index;
    numbered && next.kind == last.kind && next.data.is_none() && last.data.is_none()
}

fn extend(text: &mut Option<String>, more: Option<String>) {
    match (text.as_mut(), more) {
        (Some(text), Some(more)) => text.push_str(&more),
        (None, more @ Some(_)) => *text = more,
        (_, None) => {}
    }
}

fn bytes(detail: &Detail) -> usize {
    let texts = [
        &detail.text,
        &detail.summary,
        &detail.data,
        &detail.signature,
        &detail.id,
        &detail.format,
    ];
    let texts = texts.into_iter().flatten().map(String::len);
    detail.kind.len() + texts.sum::<usize>()
}

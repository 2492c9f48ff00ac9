//! What an answer says and thinks: one block each, numbered as they come.
//!
//! Reasoning belongs to who thought it. So its block says when the answer ends whose it is, and in which
//! member it came: a server takes it back in that one. Reasoning that came in a list of details goes back
//! as that list, which is a block of its own.

use hango_domain::conversation::ProviderData;
use hango_domain::model::StreamEvent;
use serde_json::{Value, json};

use super::chunk::Detail;
use super::details::{Details, TooMuch, words};

/// The block of the details, behind text and thinking.
const DETAILS: u32 = 2;

/// The first block behind those that are here.
pub(crate) const FIRST_CALL: u32 = 3;

/// The member of a message in which reasoning comes, and goes back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Member {
    /// The older name.
    ReasoningContent,
    /// The newer one.
    Reasoning,
    /// None: it came in a way in which it does not go back.
    None,
}

impl Member {
    /// Its name, if it has one.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::ReasoningContent => Some("reasoning_content"),
            Self::Reasoning => Some("reasoning"),
            Self::None => None,
        }
    }

    /// The member of that name.
    pub(crate) fn of(name: &Value) -> Self {
        let named = |member: &Self| name.as_str() == member.name();
        let members = [Self::ReasoningContent, Self::Reasoning];
        members.into_iter().find(named).unwrap_or(Self::None)
    }
}

/// Text and thinking of one answer.
#[derive(Debug, Default)]
pub(crate) struct Speech {
    /// The block of the text, and of the thinking, once there is one.
    text: Option<u32>,
    thinking: Option<u32>,
    member: Option<Member>,
    details: Details,
}

impl Speech {
    /// Whether anything was said.
    pub(crate) fn has_text(&self) -> bool {
        self.text.is_some()
    }

    /// How many bytes wait for the end.
    pub(crate) fn held(&self) -> usize {
        self.details.bytes()
    }

    /// More of the text.
    pub(crate) fn text(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let index = *self.text.get_or_insert(u32::from(self.thinking.is_some()));
            out.push(StreamEvent::Text { index, text });
        }
    }

    /// More of the thinking. The member in which its beginning came is that of all of it.
    pub(crate) fn thinking(&mut self, member: Member, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let index = *self.thinking.get_or_insert(u32::from(self.text.is_some()));
            self.member.get_or_insert(member);
            out.push(StreamEvent::Thinking { index, text });
        }
    }

    /// More details. What they say was said beside them, or is shown.
    pub(crate) fn details(
        &mut self,
        details: Vec<Detail>,
        is_said: bool,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), TooMuch> {
        for detail in details {
            if !is_said {
                self.thinking(Member::None, words(&detail).to_owned(), out);
            }
            self.details.push(detail)?;
        }
        Ok(())
    }

    /// The answer has ended, of that provider as that model.
    pub(crate) fn end(&mut self, provider: &str, model: &str, out: &mut Vec<StreamEvent>) {
        let own = |data| ProviderData {
            provider: provider.to_owned(),
            model: model.to_owned(),
            data,
        };
        let member = self.member.and_then(Member::name);
        if let Some(index) = self.thinking {
            let data = own(match member {
                Some(name) if self.details.is_empty() => json!({"member": name}),
                Some(_) | None => json!({}),
            });
            out.push(StreamEvent::Attach { index, data });
        }
        if !self.details.is_empty() {
            let data = own(json!({"reasoning_details": self.details.to_json()}));
            out.push(StreamEvent::Provider {
                index: DETAILS,
                data,
            });
        }
    }
}

//! Finds what models write into their text, between tags that may be split anywhere.
//!
//! * Thoughts stand at the beginning of an answer or nowhere: a tag further on is one that the text
//!   speaks of. An answer that ends within its thoughts has said nothing.
//! * A call is passed on when its end has come. One whose end never comes was text, and so was one that
//!   is longer than calls are.
//! * What can't be part of a tag is passed on at once.

use std::mem;

const THINK: &str = "<think>";
const THOUGHT: &str = "</think>";
pub(crate) const CALL: &str = "<tool_call>";
pub(crate) const CALLED: &str = "</tool_call>";

/// How many bytes of white space may stand before a thought.
const MAX_SPACE: usize = 1 << 10;

/// The most bytes that a call may have.
const MAX_CALL: usize = 1 << 20;

/// Part of an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Piece {
    /// More of the text.
    Text(String),
    /// More of the thoughts.
    Thinking(String),
    /// What stood between a call's tags.
    Call(String),
}

/// The text of one answer.
#[derive(Debug)]
pub(crate) struct Tags {
    finds_calls: bool,
    place: Place,
    /// What came and may belong to a tag, or to a call.
    held: String,
    /// How much of it is known not to begin the tag that is looked for.
    seen: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Beginning,
    Thoughts,
    /// Where white space says nothing.
    BehindThoughts,
    Text,
    Call,
}

impl Tags {
    /// Nothing has come yet, and these things are looked for.
    pub(crate) fn new(finds_thoughts: bool, finds_calls: bool) -> Self {
        Self {
            finds_calls,
            place: if finds_thoughts {
                Place::Beginning
            } else {
                Place::Text
            },
            held: String::new(),
            seen: 0,
        }
    }

    /// How many bytes are held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes in more of the text.
    pub(crate) fn push(&mut self, text: String) -> Vec<Piece> {
        if self.held.is_empty() {
            self.held = text;
        } else {
            self.held.push_str(&text);
        }
        let mut pieces = Vec::new();
        while self.step(&mut pieces) {}
        pieces
    }

    /// Nothing more comes. What was held was what it seems.
    pub(crate) fn finish(&mut self) -> Option<Piece> {
        let held = mem::take(&mut self.held);
        let piece = match self.place {
            Place::Thoughts => Piece::Thinking(held),
            Place::Call => Piece::Text(format!("{CALL}{held}")),
            Place::Beginning | Place::BehindThoughts | Place::Text => Piece::Text(held),
        };
        self.place = Place::Text;
        Some(piece).filter(|piece| !piece.is_empty())
    }

    /// Goes on to the next place; returns whether there is more to see there.
    fn step(&mut self, pieces: &mut Vec<Piece>) -> bool {
        match self.place {
            Place::Beginning => {
                let begun = self.held.trim_start();
                if let Some(rest) = begun.strip_prefix(THINK) {
                    self.held = rest.to_owned();
                    self.place = Place::Thoughts;
                    return true;
                }
                if THINK.starts_with(begun) && self.held.len() <= MAX_SPACE {
                    return false;
                }
                self.place = Place::Text;
                true
            }
            Place::Thoughts => {
                let (thought, ends) = self.until(THOUGHT);
                add(pieces, Piece::Thinking(thought));
                if ends {
                    self.place = Place::BehindThoughts;
                }
                ends
            }
            Place::BehindThoughts => {
                let space = self.held.len() - self.held.trim_start().len();
                self.held.drain(..space);
                if self.held.is_empty() {
                    return false;
                }
                self.place = Place::Text;
                true
            }
            Place::Text if !self.finds_calls => {
                add(pieces, Piece::Text(mem::take(&mut self.held)));
                false
            }
            Place::Text => {
                let (text, ends) = self.until(CALL);
                add(pieces, Piece::Text(text));
                if ends {
                    self.place = Place::Call;
                    self.seen = 0;
                }
                ends
            }
            Place::Call => self.call(pieces),
        }
    }

    fn call(&mut self, pieces: &mut Vec<Piece>) -> bool {
        if let Some(at) = self.held[self.seen..].find(CALLED) {
            let rest = self.held.split_off(self.seen + at + CALLED.len());
            self.held.truncate(self.seen + at);
            pieces.push(Piece::Call(mem::replace(&mut self.held, rest)));
            self.place = Place::Text;
            return true;
        }
        if self.held.len() > MAX_CALL {
            // It is text, all of it: were it searched again, what is a tag at every step would be too.
            let text = mem::take(&mut self.held);
            pieces.push(Piece::Text(format!("{CALL}{text}")));
            self.place = Place::Text;
            self.seen = 0;
            return false;
        }
        let seen = self.held.len().saturating_sub(CALLED.len());
        self.seen = self.held.floor_char_boundary(seen);
        false
    }

    /// What comes before a tag, and whether the tag does; neither stays.
    fn until(&mut self, tag: &str) -> (String, bool) {
        if let Some(at) = self.held.find(tag) {
            let rest = self.held.split_off(at + tag.len());
            self.held.truncate(at);
            return (mem::replace(&mut self.held, rest), true);
        }
        let is_begun = |length: &usize| self.held.ends_with(&tag[..*length]);
        let begun = (1..tag.len()).rev().find(is_begun).unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - begun);
        (mem::replace(&mut self.held, rest), false)
    }
}

impl Piece {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) | Self::Thinking(text) => text.is_empty(),
            Self::Call(_) => false,
        }
    }
}

fn add(pieces: &mut Vec<Piece>, piece: Piece) {
    if !piece.is_empty() {
        pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text is read as that comes in these pieces; like pieces are joined.
    fn read<'a>(mut tags: Tags, texts: impl IntoIterator<Item = &'a str>) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut all: Vec<Piece> = texts
            .into_iter()
            .flat_map(|text| tags.push(text.to_owned()))
            .collect();
        all.extend(tags.finish());
        for piece in all {
            match (pieces.last_mut(), piece) {
                (Some(Piece::Text(text)), Piece::Text(more))
                | (Some(Piece::Thinking(text)), Piece::Thinking(more)) => text.push_str(&more),
                (_, piece) => pieces.push(piece),
            }
        }
        pieces
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    fn thinking(text: &str) -> Piece {
        Piece::Thinking(text.to_owned())
    }

    fn call(text: &str) -> Piece {
        Piece::Call(text.to_owned())
    }

    #[test]
    fn l25_a_text_is_read_the_same_wherever_it_is_split() {
        let whole = "\n<think>a < b</thin é</think>\n\nHi <think> <tool_call>{é}</tool_call>, \
                     <tool <tool_call>2</tool_call><tool_call>open</tool_cal";
        let expected = [
            thinking("a < b</thin é"),
            text("Hi <think> "),
            call("{é}"),
            text(", <tool "),
            call("2"),
            text("<tool_call>open</tool_cal"),
        ];

        let tags = || Tags::new(true, true);
        assert_eq!(read(tags(), [whole]), expected);
        for (at, _) in whole.char_indices() {
            assert_eq!(read(tags(), [&whole[..at], &whole[at..]]), expected, "{at}");
        }
        let chars = whole
            .char_indices()
            .map(|(at, c)| &whole[at..at + c.len_utf8()]);
        assert_eq!(read(tags(), chars), expected);
    }

    #[test]
    fn l25_only_what_begins_an_answer_is_its_thought() {
        let said = "Say <think>this</think>.";

        assert_eq!(read(Tags::new(true, true), [said]), [text(said)]);
        assert_eq!(read(Tags::new(true, true), [" \n"]), [text(" \n")]);
        assert_eq!(read(Tags::new(true, true), ["<thi"]), [text("<thi")]);
    }

    #[test]
    fn l25_an_answer_that_ends_within_its_thoughts_says_nothing() {
        let pieces = read(Tags::new(true, false), ["<think>hm</th"]);

        assert_eq!(pieces, [thinking("hm</th")]);
    }

    #[test]
    fn l16_without_being_asked_nothing_is_looked_for() {
        let said = "<think>a</think><tool_call>b</tool_call>";

        assert_eq!(Tags::new(false, false).push(said.to_owned()), [text(said)]);
    }

    #[test]
    fn what_is_no_tag_is_not_held_back() {
        let mut tags = Tags::new(true, true);

        assert_eq!(tags.push("a <".to_owned()), [text("a ")]);
        assert_eq!(tags.push("b".to_owned()), [text("<b")]);
        assert_eq!(tags.push(" ".repeat(MAX_CALL)).len(), 1);
    }

    #[test]
    fn what_goes_on_for_too_long_is_text() {
        let space = " ".repeat(MAX_SPACE + 1);
        assert_eq!(Tags::new(true, false).push(space.clone()), [text(&space)]);

        let open = format!("{CALL}{}", "x".repeat(MAX_CALL + 1));
        assert_eq!(read(Tags::new(false, true), [open.as_str()]), [text(&open)]);
    }
}

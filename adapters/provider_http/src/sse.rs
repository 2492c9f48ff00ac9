//! Server-sent events out of bytes, however they are cut. Pure: a test is a list of pieces.
//!
//! * Lines end with LF, CR or CRLF, also where a piece ends between the two.
//! * Text is decoded by the line, so a character may be split between two pieces.
//! * Comments, and fields that the specification does not know, are passed over. A line that is no field
//!   at all is no event stream's: a proxy's page, or what is left of a stream that lost bytes.
//! * An event is the lines up to a blank one, or up to the end of the file.
//! * What waits for its end never exceeds the decoder's limit.

use std::mem;

use bytes::{Buf, Bytes};
use thiserror::Error;

/// What some servers begin a text with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event that has data.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Its name; `None` if it has none.
    pub name: Option<String>,
    /// Its data, with a line feed between two lines of it.
    pub data: String,
}

/// The bytes are not those of an event stream. What comes behind is lost.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Corrupt {
    /// An event is longer than the limit.
    #[error("an event of more than {0} bytes")]
    TooLong(usize),
    /// A line is not UTF-8.
    #[error("a line that is not UTF-8")]
    NotUtf8,
    /// A line is neither a field nor a comment; this one.
    #[error("a line that is no event stream's")]
    NoField(String),
}

/// Decodes one stream.
#[derive(Clone, Debug)]
pub struct Decoder {
    limit: usize,
    /// What came and was not looked at yet.
    input: Bytes,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Whether the last line ended with CR, so that an LF behind it belongs to it.
    after_cr: bool,
    /// Whether no line has ended yet.
    is_first: bool,
    name: Option<String>,
    data: Option<String>,
}

impl Decoder {
    /// Nothing has come yet. No event may have more than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            input: Bytes::new(),
            line: Vec::new(),
            after_cr: false,
            is_first: true,
            name: None,
            data: None,
        }
    }

    /// From now on, no event may have more than `limit` bytes.
    pub fn limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes in the next piece. [`event`](Self::event) should have nothing left: what it left is copied.
    pub fn push(&mut self, piece: Bytes) {
        self.input = if self.input.is_empty() {
            piece
        } else {
            [&self.input[..], &piece[..]].concat().into()
        };
    }

    /// The next event; `None` while more is needed for one.
    pub fn event(&mut self) -> Result<Option<Event>, Corrupt> {
        while let Some(line) = self.take_line()? {
            if let Some(event) = self.read(line)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The event that the end of the file ends, if one had begun. One that was cut off within a line that
    /// says nothing is none.
    pub fn finish(&mut self) -> Option<Event> {
        let line = mem::take(&mut self.line);
        match self.read(line) {
            Ok(Some(event)) => Some(event),
            Ok(None) => self.dispatch(),
            Err(_) => None,
        }
    }

    /// The next line whose end has come, without that end.
    fn take_line(&mut self) -> Result<Option<Vec<u8>>, Corrupt> {
        if self.after_cr && !self.input.is_empty() {
            self.after_cr = false;
            if self.input.starts_with(b"\n") {
                self.input.advance(1);
            }
        }
        let end = self.input.iter().position(|byte| b"\r\n".contains(byte));
        let more = &self.input[..end.unwrap_or(self.input.len())];
        let fields = [&self.name, &self.data].into_iter().flatten();
        let waiting = self.line.len() + fields.map(String::len).sum::<usize>();
        if waiting + more.len() > self.limit {
            return Err(Corrupt::TooLong(self.limit));
        }
        self.line.extend_from_slice(more);
        let Some(end) = end else {
            self.input.clear();
            return Ok(None);
        };
        self.after_cr = self.input[end] == b'\r';
        self.input.advance(end + 1);
        Ok(Some(mem::take(&mut self.line)))
    }

    fn read(&mut self, mut line: Vec<u8>) -> Result<Option<Event>, Corrupt> {
        if mem::take(&mut self.is_first) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let mut line = String::from_utf8(line).map_err(|_| Corrupt::NotUtf8)?;
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (name, value) = match line.find(':') {
            Some(0) => return Ok(None),
            Some(colon) => {
                let space = line[colon + 1..].starts_with(' ');
                (colon, colon + 1 + usize::from(space))
            }
            None => (line.len(), line.len()),
        };
        match &line[..name] {
            "data" => {
                line.drain(..value);
                match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(&line);
                    }
                    None => self.data = Some(line),
                }
            }
            "event" => {
                line.drain(..value);
                self.name = Some(line);
            }
            "id" | "retry" => {}
            unknown if value > name && is_name(unknown) => {}
            _ => return Err(Corrupt::NoField(line)),
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = self.name.take().filter(|name| !name.is_empty());
        let mut data = self.data.take()?;
        data.shrink_to_fit();
        Some(Event { name, data })
    }
}

/// Whether a field may be called so.
fn is_name(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests;

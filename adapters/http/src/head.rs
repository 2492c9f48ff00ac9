//! Whether the head of a request can be read in one way only.
//!
//! What a proxy in front reads in another way than the server behind it is how a request is smuggled past
//! the former, so nothing is forgiven here that the standard lets a server forgive: a line ends with CR LF, a
//! body has one length, and a request one host.

use std::fmt;

use http::Uri;
use httparse::{EMPTY_HEADER, Header, Request, Status};

/// The most bytes that a request's line and headers may have together.
pub(crate) const MAX_HEAD: usize = 32 * 1024;

/// The most header lines.
pub(crate) const MAX_HEADERS: usize = 128;

/// Lengths beyond this are nobody's: programs begin to count anew there.
const MAX_LENGTH: u64 = u64::MAX / 2;

/// Why a request's head was not read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// It is longer than [`MAX_HEAD`], or has more lines than [`MAX_HEADERS`].
    TooLarge,
    /// It is not HTTP/1.1, or can be read in two ways.
    Malformed(String),
}

/// Where a request's body ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Framing {
    /// Behind so many bytes.
    Length(u64),
    /// Where its chunks say so.
    Chunked,
}

/// How far the lines of a head have come.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Lines {
    /// The head's end is not there yet.
    Open,
    /// There is an empty line before the head.
    Empty,
    /// The head has so many bytes, its last line included.
    Whole(usize),
}

/// Looks for the end of a head in what came so far, of which the first `seen` bytes were looked at before.
pub(crate) fn lines(bytes: &[u8], seen: usize) -> Result<Lines, Refusal> {
    for (at, _) in bytes
        .iter()
        .enumerate()
        .skip(seen)
        .filter(|(_, c)| **c == b'\n')
    {
        match &bytes[..at] {
            b"\r" => return Ok(Lines::Empty),
            line if !line.ends_with(b"\r") => {
                return Err(malformed("a line does not end with CR LF"));
            }
            _ if at >= MAX_HEAD => return Err(Refusal::TooLarge),
            head if head.ends_with(b"\r\n\r") => return Ok(Lines::Whole(at + 1)),
            _ => {}
        }
    }
    if bytes.len() > MAX_HEAD {
        return Err(Refusal::TooLarge);
    }
    Ok(Lines::Open)
}

/// Reads a whole head as far as it decides where the request ends.
pub(crate) fn framing(head: &[u8]) -> Result<Framing, Refusal> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(head) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return Err(malformed("the head has no end")),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLarge),
        Err(error) => return Err(malformed(error)),
    }
    let target = request.path.unwrap_or_default();
    if target.parse::<Uri>().is_err() {
        return Err(malformed("the target is no URI"));
    }
    let is_1_1 = request.version == Some(1);
    let hosts = values(request.headers, "host").count();
    if hosts > 1 || (is_1_1 && hosts == 0) {
        return Err(malformed("one Host header is expected"));
    }
    let lengths: Vec<_> = values(request.headers, "content-length").collect();
    let codings: Vec<_> = values(request.headers, "transfer-encoding").collect();
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(Framing::Length(0)),
        ([length], []) => length_of(length).map(Framing::Length),
        ([], [coding]) if is_1_1 && coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        ([], _) => Err(malformed("the only transfer coding is chunked")),
        (_, []) => Err(malformed("the body has two lengths")),
        (_, _) => Err(malformed("the body has a length and a transfer coding")),
    }
}

fn values<'h>(headers: &'h [Header<'_>], name: &'static str) -> impl Iterator<Item = &'h [u8]> {
    let named = headers
        .iter()
        .filter(move |it| it.name.eq_ignore_ascii_case(name));
    named.map(|header| header.value)
}

fn length_of(value: &[u8]) -> Result<u64, Refusal> {
    let digits = std::str::from_utf8(value).ok();
    let digits = digits.filter(|value| value.bytes().all(|c| c.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse::<u64>().ok())
        .filter(|length| *length <= MAX_LENGTH)
        .ok_or_else(|| malformed("the body's length is no number"))
}

fn malformed(why: impl fmt::Display) -> Refusal {
    Refusal::Malformed(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<Framing, Refusal> {
        match lines(head.as_bytes(), 0)? {
            Lines::Whole(length) => framing(&head.as_bytes()[..length]),
            open => panic!("{open:?}"),
        }
    }

    fn with(headers: &str) -> Result<Framing, Refusal> {
        read(&format!(
            "POST /v1/agents HTTP/1.1\r\nHost: x\r\n{headers}\r\n"
        ))
    }

    #[test]
    fn a_body_ends_in_one_place() {
        assert_eq!(with(""), Ok(Framing::Length(0)));
        assert_eq!(with("Content-Length: 17\r\n"), Ok(Framing::Length(17)));
        assert_eq!(with("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
    }

    #[test]
    fn d42_what_can_be_read_in_two_ways_is_not_read() {
        for headers in [
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "Transfer-Encoding : chunked\r\n",
            "Transfer-Encoding:\r\n chunked\r\n",
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: \r\n",
            "Content-Length: 9223372036854775808\r\n",
            "Content-Length: 18446744073709551616\r\n",
            "Host: y\r\n",
            "x: a\rb\r\n",
            "x: a\0b\r\n",
            "x: a\nb: c\r\n",
        ] {
            assert!(
                matches!(with(headers), Err(Refusal::Malformed(_))),
                "{headers:?}"
            );
        }
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
            "GET /\r\n\r\n",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET nowhere HTTP/1.1 x\r\nHost: x\r\n\r\n",
            "\x16\x03\x01\r\n\r\n",
        ] {
            assert!(matches!(read(head), Err(Refusal::Malformed(_))), "{head:?}");
        }
    }

    #[test]
    fn a_head_has_its_bounds_to_the_byte() {
        let padded = |length: usize| {
            let rest = "GET / HTTP/1.1\r\nHost: x\r\nx: \r\n\r\n".len();
            format!("x: {}\r\n", "p".repeat(length - rest))
        };
        let get = |headers: &str| read(&format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n"));

        assert_eq!(get(&padded(MAX_HEAD)), Ok(Framing::Length(0)));
        assert_eq!(get(&padded(MAX_HEAD + 1)), Err(Refusal::TooLarge));
        assert_eq!(
            get(&"x: y\r\n".repeat(MAX_HEADERS - 1)),
            Ok(Framing::Length(0))
        );
        assert_eq!(get(&"x: y\r\n".repeat(MAX_HEADERS)), Err(Refusal::TooLarge));
        let endless = vec![b'p'; MAX_HEAD + 1];
        assert_eq!(lines(&endless, 0), Err(Refusal::TooLarge));
    }

    #[test]
    fn a_head_is_found_wherever_it_was_cut() {
        let head = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for cut in 0..head.len() {
            assert_eq!(lines(&head[..cut], 0), Ok(Lines::Open));
            assert_eq!(lines(head, cut), Ok(Lines::Whole(head.len())));
        }
        assert_eq!(lines(b"\r\nGET", 0), Ok(Lines::Empty));
    }
}

//! PostgreSQL's frames: a letter, a length that counts itself, a body. A client's first has no letter.

/// The letter's place of a frame without one.
const FIRST: u8 = 0;

/// Cuts a stream into frames, however its bytes arrive.
pub(super) struct Frames {
    buffer: Vec<u8>,
    first: bool,
}

/// What a client says that matters here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Frontend<'a> {
    /// Statements as text, to be executed at once.
    Query(&'a str),
    /// A statement gets a name.
    Parse { name: &'a str, text: &'a str },
    /// A named statement is executed.
    Bind { name: &'a str },
}

/// What a server says that matters here.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Backend {
    /// It has answered, and waits.
    Ready {
        /// Within a transaction.
        within: bool,
    },
}

impl Frames {
    pub(super) fn of_client() -> Self {
        Self {
            buffer: Vec::new(),
            first: true,
        }
    }

    pub(super) fn of_server() -> Self {
        Self {
            first: false,
            ..Self::of_client()
        }
    }

    /// Takes `bytes`, and gives each frame that is whole now.
    pub(super) fn read(&mut self, bytes: &[u8], mut each: impl FnMut(u8, &[u8])) {
        self.buffer.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((kind, body, end)) = frame(&self.buffer[at..], self.first) {
            each(kind, body);
            self.first = false;
            at += end;
        }
        self.buffer.drain(..at);
    }
}

/// The first frame, if it is whole: letter, body and where it ends.
fn frame(bytes: &[u8], first: bool) -> Option<(u8, &[u8], usize)> {
    let (kind, rest) = if first {
        (FIRST, bytes)
    } else {
        let (kind, rest) = bytes.split_first()?;
        (*kind, rest)
    };
    let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    let body = rest.get(4..length)?;
    Some((kind, body, bytes.len() - rest.len() + length))
}

impl<'a> Frontend<'a> {
    pub(super) fn read(kind: u8, body: &'a [u8]) -> Option<Self> {
        let (first, rest) = text(body)?;
        match kind {
            b'Q' => Some(Self::Query(first)),
            b'P' => Some(Self::Parse {
                name: first,
                text: text(rest)?.0,
            }),
            // The first is the portal's name.
            b'B' => Some(Self::Bind {
                name: text(rest)?.0,
            }),
            _ => None,
        }
    }
}

impl Backend {
    pub(super) fn read(kind: u8, body: &[u8]) -> Option<Self> {
        let within = body.first().is_some_and(|status| *status != b'I');
        (kind == b'Z').then_some(Self::Ready { within })
    }
}

/// A text that ends with a zero, and what is behind it.
fn text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((text, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("it is short");
        let mut frame = vec![kind];
        frame.extend(length.to_be_bytes());
        frame.extend(body);
        frame
    }

    #[test]
    fn frames_are_found_wherever_the_stream_is_cut() {
        let mut stream = vec![0, 0, 0, 8, 0, 3, 0, 0];
        stream.extend(framed(b'P', b"s1\0select 1\0\0\0"));
        stream.extend(framed(b'B', b"\0s1\0\0\0"));
        stream.extend(framed(b'S', b""));
        stream.extend(framed(b'Q', b"commit\0"));
        for cut in 0..stream.len() {
            let mut frames = Frames::of_client();
            let mut kinds = Vec::new();
            let mut texts = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                frames.read(part, |kind, body| {
                    kinds.push(kind);
                    texts.extend(Frontend::read(kind, body).map(|it| format!("{it:?}")));
                });
            }
            assert_eq!(kinds, [FIRST, b'P', b'B', b'S', b'Q']);
            let expected = [
                Frontend::Parse {
                    name: "s1",
                    text: "select 1",
                },
                Frontend::Bind { name: "s1" },
                Frontend::Query("commit"),
            ];
            assert_eq!(texts, expected.map(|it| format!("{it:?}")));
        }
    }

    #[test]
    fn a_server_tells_whether_a_transaction_is_open() {
        for (status, within) in [(b'I', false), (b'T', true), (b'E', true)] {
            let ready = Backend::read(b'Z', &[status]);
            assert_eq!(ready, Some(Backend::Ready { within }));
        }
        assert_eq!(Backend::read(b'C', b"SELECT 1\0"), None);
    }
}

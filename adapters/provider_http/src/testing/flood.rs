//! A server that sends more than anybody wants, and how much memory that takes.
//!
//! The test binary counts its memory, in an allocator of its own, and hands it in as a [`Meter`]. The
//! server is a thread that makes up what it sends while it sends it, so nearly all that is counted is
//! the provider's and the answer's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use futures::StreamExt;
use hango_domain::accumulator::{Accumulator, MAX_ANSWER_BYTES};
use hango_domain::conversation::{Block, Role};
use hango_domain::model::{ModelFailure, ModelReply};
use hango_ports::Provider;
use http::HeaderMap;
use serde_json::Map;
use tokio::time::Instant;
use url::Url;

use super::call;
use crate::settings::Settings;
use crate::wire::MAX_EVENT;

/// The most memory that one stream may take, whatever its server sends.
const MOST: usize = 8 << 20;

/// About as many bytes as an event may have.
pub const LONG: usize = MAX_EVENT - (1 << 10);

/// About as many bytes as an answer may have.
pub const ANSWER: usize = MAX_ANSWER_BYTES - (1 << 10);

/// As many times as it takes until nobody listens any more.
pub const FOR_EVER: usize = usize::MAX;

/// How the test binary counts its memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Forgets the most there ever was.
    pub reset: fn(),
    /// How much there is now.
    pub now: fn() -> usize,
    /// The most there was since it was forgotten.
    pub most: fn() -> usize,
}

/// What a server sends.
#[derive(Clone, Debug)]
pub struct Flood {
    name: &'static str,
    head: &'static str,
    /// Texts, and how often each is repeated.
    body: Vec<(String, usize)>,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Answer,
    /// A failure whose message holds this.
    Failure(&'static str),
}

impl Flood {
    /// A stream that ends in a failure whose message holds `words`.
    #[must_use]
    pub fn fails<T: Into<String>>(
        name: &'static str,
        words: &'static str,
        body: impl IntoIterator<Item = (T, usize)>,
    ) -> Self {
        let body = body.into_iter();
        Self {
            name,
            head: "200 OK\r\ncontent-type: text/event-stream",
            body: body.map(|(text, times)| (text.into(), times)).collect(),
            end: End::Failure(words),
        }
    }

    /// A stream that is an answer, however large.
    #[must_use]
    pub fn answers<T: Into<String>>(
        name: &'static str,
        body: impl IntoIterator<Item = (T, usize)>,
    ) -> Self {
        Self {
            end: End::Answer,
            ..Self::fails(name, "", body)
        }
    }

    /// The same as one document, which was not asked for.
    #[must_use]
    pub fn as_document(self) -> Self {
        let head = "200 OK\r\ncontent-type: application/json";
        Self { head, ..self }
    }

    /// The same as a refusal.
    #[must_use]
    pub fn as_refusal(self) -> Self {
        let head = "500 Internal Server Error\r\ncontent-type: application/json";
        Self { head, ..self }
    }

    fn serve(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            hear(&stream);
            // Whoever has heard enough hangs up.
            let _ = self.send(stream);
        });
        address
    }

    fn send(&self, mut stream: TcpStream) -> std::io::Result<()> {
        write!(
            stream,
            "HTTP/1.1 {}\r\nconnection: close\r\n\r\n",
            self.head
        )?;
        for (text, times) in &self.body {
            // A piece is not small, so that a flood does not take long.
            let at_once = (16 << 10) / text.len().max(1) + 1;
            let (whole, rest) = (times / at_once, times % at_once);
            if whole > 0 {
                let piece = text.repeat(at_once);
                for _ in 0..whole {
                    stream.write_all(piece.as_bytes())?;
                }
            }
            stream.write_all(text.repeat(rest).as_bytes())?;
        }
        Ok(())
    }
}

/// What any server may send, whatever its protocol.
#[must_use]
pub fn of_any_server() -> Vec<Flood> {
    let kibibyte = "x".repeat(1 << 10);
    let one = |text: &str| (text.to_owned(), 1);
    let many = |text: &str, times| (text.to_owned(), times);
    let within = |text: &str, end: &str| {
        let times = LONG / text.len();
        [
            one("data: {\"x\":"),
            many(text, times),
            one(end),
            one("\n\n"),
        ]
    };
    vec![
        Flood::fails(
            "an event in one line",
            "sent an answer of more than 1856 KiB",
            [one("data: "), many(&kibibyte, 64 << 10)],
        ),
        Flood::fails(
            "an event in many lines",
            "sent an answer of more than 1856 KiB",
            [many(&format!("data: {kibibyte}\n"), 64 << 10)],
        ),
        Flood::fails(
            "an event in short lines",
            "sent an answer of more than 1856 KiB",
            [many("data: 0123456789\n", 1 << 20)],
        ),
        Flood::fails(
            "the name of an event",
            "sent an answer of more than 1856 KiB",
            [
                one("event: "),
                many(&kibibyte, 2 << 10),
                one("\ndata: "),
                many(&kibibyte, 1 << 10),
            ],
        ),
        Flood::fails(
            "a million events",
            "sent an answer of more than 500000 events",
            [many("data:{}\n\n", 1_000_000)],
        ),
        Flood::fails(
            "comments and blank lines without end",
            "sent an answer of more than 64 MiB",
            [many(&format!(": {kibibyte}\r\n\n"), FOR_EVER)],
        ),
        Flood::fails(
            "a document without end",
            "sent an answer of more than 1856 KiB",
            [one("{\"x\":\""), many("x", FOR_EVER)],
        )
        .as_document(),
        Flood::fails(
            "a refusal without end",
            "answered 500",
            [many(&kibibyte, FOR_EVER)],
        )
        .as_refusal(),
        Flood::fails(
            "a refusal of many values",
            "answered 500",
            [one("{\"error\":["), many("{\"\":0},", 9000), one("0]}")],
        )
        .as_refusal(),
        Flood::fails(
            "the name of a member",
            "",
            [one("data: {\""), many("x", LONG - 100), one("\\n\":1}\n\n")],
        ),
        Flood::fails(
            "half a character and a long text",
            "",
            [
                one("data: {\"type\":\"ping\",\"x\":\"\\ud800\",\"message\":\""),
                many("x", LONG - 100),
                one("\\n\"}\n\n"),
            ],
        ),
        Flood::fails(
            "lists within lists",
            "sent an event that",
            within("[", "1}"),
        ),
        Flood::fails("what is no JSON", "sent an event that", within("\\", "}")),
        Flood::fails(
            "an error of many words",
            "reported an error",
            [
                one("data: {\"error\":{\"message\":\""),
                many("a ", LONG / 2 - 100),
                one("\"}}\n\n"),
            ],
        ),
    ]
}

/// Has each of these sent to a provider that is made for the address of its server, and the memory
/// counted that this takes.
///
/// # Panics
///
/// Panics if it is more than a stream may take, or does not end as it should.
pub async fn takes_little_memory(
    meter: Meter,
    floods: impl IntoIterator<Item = Flood>,
    provider: impl Fn(Settings) -> Box<dyn Provider>,
) {
    let mut wrong = Vec::new();
    for flood in floods {
        let (name, end) = (flood.name, flood.end);
        let provider = provider(settings(flood.serve()));
        let begin = Instant::now();
        let before = (meter.now)();
        (meter.reset)();

        let answer = ask(&*provider).await;

        let taken = (meter.most)().saturating_sub(before) >> 10;
        println!("{name}: {taken} KiB in {:?}", begin.elapsed());
        if taken > MOST >> 10 {
            wrong.push(format!("{name}: takes {taken} KiB"));
        }
        match (end, answer) {
            (End::Answer, Ok(_)) => {}
            (End::Failure(words), Err(failure))
                if failure.message.contains(words) && failure.message.len() <= 1 << 10 => {}
            (_, Ok(_)) => wrong.push(format!("{name}: is an answer")),
            (_, Err(failure)) => wrong.push(format!("{name}: {}", failure.message)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What the engine makes of one answer.
async fn ask(provider: &dyn Provider) -> Result<ModelReply, ModelFailure> {
    let call = call(vec![(Role::User, vec![Block::text("hi")])]);
    let mut answer = Accumulator::new("call_1");
    let mut events = provider.stream(call).await?;
    while let Some(event) = events.next().await {
        let pushed = event.and_then(|event| answer.push(event));
        if let Err(failure) = pushed {
            drop(events);
            // As the engine does: what has arrived is kept.
            let partial = answer.partial();
            return Err(ModelFailure { partial, ..failure });
        }
    }
    drop(events);
    answer.finish()
}

/// Reads a request to its end.
fn hear(stream: &TcpStream) {
    let mut lines = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).expect("a body");
}

fn settings(address: SocketAddr) -> Settings {
    let minute = Duration::from_mins(1);
    Settings {
        name: "local".to_owned(),
        base_url: Url::parse(&format!("http://{address}")).expect("a URL"),
        api_key: None,
        headers: HeaderMap::new(),
        extra_body: Map::new(),
        connect_timeout: minute,
        first_byte_timeout: minute,
        idle_timeout: minute,
    }
}

use std::convert::Infallible;
use std::io;

use futures::stream::iter;
use hango_domain::conversation::StopReason;
use hango_domain::model::Stop;

use super::*;

const IDLE: Duration = Duration::from_mins(1);

/// A protocol of words: most are text, some are not.
struct Words {
    stopped: bool,
}

impl Dialect for Words {
    fn event(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Flow, ModelFailure> {
        match event.data.as_str() {
            "[stop]" => {
                self.stopped = true;
                out.push(STOP_EVENT);
            }
            "[done]" => return Ok(Flow::Done),
            broken if broken.starts_with('[') => return Err(origin().garbled("a word", broken)),
            text => out.push(word(text)),
        }
        Ok(Flow::More)
    }

    fn whole(&mut self, _: &str, _: &mut Vec<StreamEvent>) -> Result<(), ModelFailure> {
        Ok(())
    }

    fn closed(&mut self, out: &mut Vec<StreamEvent>) {
        out.push(word("[closed]"));
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn held(&self) -> usize {
        0
    }
}

fn word(text: &str) -> StreamEvent {
    StreamEvent::Text {
        index: 0,
        text: text.to_owned(),
    }
}

fn origin() -> Origin {
    Origin::named("local")
}

fn read<E>(
    body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> impl Stream<Item = Result<StreamEvent, ModelFailure>>
where
    E: std::error::Error + Send + 'static,
{
    let patience = Patience {
        first_byte: Instant::now() + 2 * IDLE,
        idle: IDLE,
    };
    answer(body, origin(), patience, Words { stopped: false })
}

async fn read_pieces(pieces: Vec<Bytes>) -> Vec<Result<StreamEvent, ModelFailure>> {
    read(iter(pieces.into_iter().map(Ok::<_, Infallible>)))
        .collect()
        .await
}

async fn read_text(text: &str) -> Vec<Result<StreamEvent, ModelFailure>> {
    read_pieces(vec![Bytes::from(text.to_owned())]).await
}

fn failed(kind: ModelFailureKind, message: &str) -> Result<StreamEvent, ModelFailure> {
    Err(ModelFailure::new(kind, format!("provider local {message}")))
}

/// Nothing came in time.
fn silent() -> Result<StreamEvent, ModelFailure> {
    let failed = failed(ModelFailureKind::Unavailable, "fell silent");
    failed.map_err(|failure| failure.caused_by(FailureCause::Timeout))
}

/// A body of `pieces`, a wait in seconds before each; then nothing more, and no end.
fn slowly(pieces: &[(u64, &'static str)]) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
    let pieces = pieces.to_vec();
    iter(pieces)
        .then(|(seconds, piece)| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Bytes::from(piece))
        })
        .chain(stream::pending())
}

const HI: &str = "data: hi\n\n";
const STOP: &str = "data: [stop]\n\n";
const DONE: &str = "data: [done]\n\n";
const STOP_EVENT: StreamEvent = StreamEvent::Stop(Stop::Answer(StopReason::EndTurn));

#[tokio::test]
async fn t7_a_long_event_is_read_and_an_endless_one_is_not() {
    let event = |bytes: usize| vec![Bytes::from(format!("data: {}\n\n", "x".repeat(bytes)))];
    let too_long = || {
        failed(
            ModelFailureKind::Protocol,
            "sent an answer of more than 1856 KiB",
        )
    };

    assert!(matches!(
        read_pieces(event(MAX_EVENT - 6)).await[..],
        [Ok(_), Ok(_)]
    ));
    assert_eq!(read_pieces(event(3 << 20)).await, [too_long()]);
    let endless = Bytes::from(vec![b'x'; 1 << 20]);
    assert_eq!(read_pieces(vec![endless; 9]).await, [too_long()]);
}

#[tokio::test]
async fn an_answer_without_an_end_is_limited_in_bytes_and_in_events() {
    let line = |field: &str| Bytes::from(format!("{field}: {}\n\n", "x".repeat(1 << 20)));
    let bytes = read_pieces(vec![line(""); 65]).await;
    let told = read_pieces(vec![line("data"); 2]).await;
    let events = read_pieces(vec![Bytes::from("data:\n\n".repeat(1000)); 501]).await;

    let message = |what: &str| format!("sent an answer of more than {what}");
    let failed = |what| Some(failed(ModelFailureKind::Protocol, &message(what)));
    assert_eq!(bytes.last().cloned(), failed("64 MiB"));
    assert_eq!(told.len(), 2);
    assert_eq!(told.last().cloned(), failed("1856 KiB"));
    assert_eq!(events.last().cloned(), failed("500000 events"));
}

#[tokio::test]
async fn a_body_that_is_no_stream_is_limited_in_bytes() {
    let body = iter(vec![
        Ok::<_, Infallible>(Bytes::from(vec![b'x'; 1 << 20]));
        5
    ]);
    let patience = Patience {
        first_byte: Instant::now() + IDLE,
        idle: IDLE,
    };

    let read = text(body, origin(), patience, MAX_EVENT).await;

    let message = "provider local sent an answer of more than 1856 KiB";
    assert_eq!(
        read,
        Err(ModelFailure::new(ModelFailureKind::Protocol, message))
    );
}

#[tokio::test]
async fn t8_the_last_event_may_lack_its_blank_line() {
    for end in ["", "\n", "\r", "\r\n"] {
        let read = read_text(&format!("{HI}{}{end}", STOP.trim_end())).await;

        assert_eq!(
            read,
            [Ok(word("hi")), Ok(STOP_EVENT), Ok(word("[closed]"))],
            "{end:?}"
        );
    }
}

#[tokio::test]
async fn what_is_no_event_stream_is_a_failure_that_may_pass_and_what_came_before_it_stands() {
    let read = read_text(&format!("{HI}<html>Bad Gateway</html>\n")).await;

    let message = "sent a line that is no event stream's: <html>Bad Gateway</html>";
    assert_eq!(
        read,
        [Ok(word("hi")), failed(ModelFailureKind::Protocol, message)]
    );
}

#[tokio::test]
async fn a_broken_event_is_a_failure_unless_only_its_end_is_missing_behind_the_stop() {
    let broken = || failed(ModelFailureKind::Protocol, "sent a word: [sto");

    let cut = read_text("data: [sto").await;
    let amid = read_text(&format!("{STOP}data: [sto\n\n{HI}")).await;
    let behind = read_text(&format!("{STOP}data: [sto")).await;

    assert_eq!(cut, [broken()]);
    assert_eq!(amid, [Ok(STOP_EVENT), broken()]);
    assert_eq!(behind, [Ok(STOP_EVENT)]);
}

#[tokio::test]
async fn what_follows_the_end_is_not_read() {
    let body = slowly(&[(0, HI), (0, STOP), (0, DONE), (0, HI)]);

    assert_eq!(read(body).count().await, 2);
}

#[tokio::test]
async fn t15_a_connection_that_breaks_ends_the_answer_with_a_failure() {
    let reset = || io::Error::new(io::ErrorKind::ConnectionReset, "reset by peer");
    let body = |text: &str| iter([Ok(Bytes::from(text.to_owned())), Err(reset())]);

    let broken: Vec<_> = read(body(HI)).collect().await;
    let ended: Vec<_> = read(body(STOP)).collect().await;

    let failure = failed(ModelFailureKind::Unavailable, "broke off: reset by peer");
    assert_eq!(broken[1..], [failure]);
    assert_eq!(ended, [Ok(STOP_EVENT)]);
}

#[tokio::test(start_paused = true)]
async fn t14_silence_ends_the_answer_after_the_idle_timeout() {
    let begin = Instant::now();

    let answer: Vec<_> = read(slowly(&[(110, HI), (59, HI)])).collect().await;

    assert_eq!(answer[2..], [silent()]);
    assert_eq!(begin.elapsed().as_secs(), 110 + 59 + 60);
}

#[tokio::test(start_paused = true)]
async fn t14_silence_behind_the_stop_is_the_end() {
    assert_eq!(read(slowly(&[(0, STOP)])).count().await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_byte_has_a_time_of_its_own() {
    let begin = Instant::now();

    let answer: Vec<_> = read(slowly(&[(121, HI)])).collect().await;

    assert_eq!(answer, [silent()]);
    assert_eq!(begin.elapsed(), 2 * IDLE);
}

#[tokio::test(start_paused = true)]
async fn t5_comments_keep_a_stream_alive_for_three_idle_timeouts() {
    let begin = Instant::now();

    let answer: Vec<_> = read(slowly(&[(50, ": PROCESSING\n\n"); 10]))
        .collect()
        .await;

    assert_eq!(answer, [silent()]);
    assert_eq!(begin.elapsed(), 3 * IDLE);
}

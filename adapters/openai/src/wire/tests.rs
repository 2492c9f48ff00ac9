use std::convert::Infallible;
use std::io;

use futures::stream::iter;
use hango_domain::conversation::StopReason;
use hango_domain::model::Stop;

use super::*;

const IDLE: Duration = Duration::from_mins(1);

/// As a server sent it: comments, both spellings of the colon, an event over two lines, text beyond ASCII.
const RECORDED: &str = concat!(
    ": OPENROUTER PROCESSING\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data:{\"choices\":[{\"index\":0,\ndata:\"delta\":{\"content\":\"caf\u{e9} \"}}]}\n\n",
    "event: message\ndata: {\"choices\":[{\"delta\":{\"content\":\"\u{1f600}\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n",
);

fn origin() -> Origin {
    Origin {
        provider: "local".to_owned(),
        secrets: Vec::new(),
        request_id: None,
    }
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
    answer(body, origin(), patience, Mapping::new(origin(), "m"))
}

async fn read_pieces(pieces: Vec<Bytes>) -> Vec<Result<StreamEvent, ModelFailure>> {
    read(iter(pieces.into_iter().map(Ok::<_, Infallible>)))
        .collect()
        .await
}

fn told() -> Vec<Result<StreamEvent, ModelFailure>> {
    let text = |text: &str| StreamEvent::Text {
        index: 0,
        text: text.to_owned(),
    };
    let usage = hango_domain::conversation::Usage {
        input_tokens: 2,
        output_tokens: 3,
        ..Default::default()
    };
    vec![
        Ok(text("caf\u{e9} ")),
        Ok(text("\u{1f600}")),
        Ok(StreamEvent::Stop(Stop::Answer(StopReason::EndTurn))),
        Ok(StreamEvent::Usage(usage)),
    ]
}

fn failed(kind: ModelFailureKind, message: &str) -> Result<StreamEvent, ModelFailure> {
    Err(ModelFailure::new(kind, format!("provider local {message}")))
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

const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn t1_to_t6_a_stream_says_the_same_wherever_it_is_split() {
    let bytes = Bytes::from_static(RECORDED.as_bytes());
    for at in 0..=bytes.len() {
        let pieces = vec![bytes.slice(..at), bytes.slice(at..)];

        assert_eq!(read_pieces(pieces).await, told(), "split at {at}");
    }
    let pieces = (0..bytes.len()).map(|at| bytes.slice(at..=at)).collect();
    assert_eq!(read_pieces(pieces).await, told(), "split everywhere");
}

#[tokio::test]
async fn t3_lines_may_end_in_any_way() {
    for end in ["\r\n", "\r"] {
        let bytes = Bytes::from(RECORDED.replace('\n', end));
        let pieces = (0..bytes.len()).map(|at| bytes.slice(at..=at)).collect();

        assert_eq!(read_pieces(pieces).await, told(), "{end:?}");
    }
}

#[tokio::test]
async fn t7_a_long_event_is_read_and_an_endless_one_is_not() {
    let event = |bytes: usize| {
        let text = "x".repeat(bytes);
        let json = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
        vec![Bytes::from(json)]
    };

    assert!(matches!(read_pieces(event(2 << 20)).await[..], [Ok(_)]));
    let too_long = failed(
        ModelFailureKind::Protocol,
        "sent an event of more than 4 MiB",
    );
    assert_eq!(read_pieces(event(5 << 20)).await, [too_long]);
    let endless = Bytes::from(vec![b'x'; 1 << 20]);
    let too_much = failed(
        ModelFailureKind::Protocol,
        "sent an answer of more than 8 MiB",
    );
    assert_eq!(read_pieces(vec![endless; 9]).await, [too_much]);
}

#[tokio::test]
async fn t8_the_last_event_may_lack_its_blank_line() {
    for end in ["", "\n", "\r", "\r\n"] {
        let text = format!("{HI}{}{end}", STOP.trim_end());

        assert_eq!(
            read_pieces(vec![Bytes::from(text)]).await.len(),
            2,
            "{end:?}"
        );
    }
}

#[tokio::test]
async fn what_follows_done_is_not_read() {
    let body = slowly(&[(0, HI), (0, STOP), (0, "data: [DONE]\n\n"), (0, HI)]);

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
    assert_eq!(
        ended,
        [Ok(StreamEvent::Stop(Stop::Answer(StopReason::EndTurn)))]
    );
}

#[tokio::test(start_paused = true)]
async fn t14_silence_ends_the_answer_after_the_idle_timeout() {
    let begin = Instant::now();

    let answer: Vec<_> = read(slowly(&[(110, HI), (59, HI)])).collect().await;

    assert_eq!(
        answer[2..],
        [failed(ModelFailureKind::Unavailable, "fell silent")]
    );
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

    assert_eq!(
        answer,
        [failed(ModelFailureKind::Unavailable, "fell silent")]
    );
    assert_eq!(begin.elapsed(), 2 * IDLE);
}

#[tokio::test(start_paused = true)]
async fn t5_comments_keep_a_stream_alive_for_three_idle_timeouts() {
    let begin = Instant::now();

    let answer: Vec<_> = read(slowly(&[(50, ": PROCESSING\n\n"); 10]))
        .collect()
        .await;

    assert_eq!(
        answer,
        [failed(ModelFailureKind::Unavailable, "fell silent")]
    );
    assert_eq!(begin.elapsed(), 3 * IDLE);
}

//! Providers that reach another process: what they ask it, how long they wait for it, and that they let
//! go of it.

use futures::StreamExt;
use hango_domain::conversation::Block;
use hango_domain::model::ModelFailureKind;
use serde_json::{Map, json};

use super::asking::{ask, assistant, call, hello, user};
use super::{Act, Play, RemoteProvider, Spoken};
use crate::other_side::in_time;

/// The model is told all that the call says, the conversation in its order.
pub async fn a_request_says_all_that_the_call_does(stage: impl AsyncFn(Play) -> RemoteProvider) {
    let remote = stage(Play::of([Spoken::text(&["Yes."]).act()])).await;
    let input = Map::from_iter([("order_number".to_owned(), json!("1234567"))]);
    let asked = call([
        user(vec![Block::text("Where is order 1234567?")]),
        assistant(vec![
            Block::text("Let me look it up."),
            Block::ToolUse {
                id: "call_of_the_check".to_owned(),
                name: "look_up_order".to_owned(),
                input,
                provider_data: None,
            },
        ]),
        user(vec![Block::ToolResult {
            tool_use_id: "call_of_the_check".to_owned(),
            content: "in the harbour".to_owned(),
            for_user: Some("only for people".to_owned()),
            is_error: false,
        }]),
        assistant(vec![Block::text("It is in the harbour.")]),
        user(vec![Block::text("Is that near?")]),
    ]);

    let came = ask(&*remote.provider, asked).await;

    came.outcome.expect("a whole answer");
    let heard = remote.other_side.heard();
    let [request] = heard.as_slice() else {
        panic!("one request, not {heard:?}");
    };
    for part in [
        "model-of-the-check",
        "Answer in one sentence.",
        "Finds an order by its number.",
        "order_number",
        "Seven digits.",
        "call_of_the_check",
        "1877",
        "0.25",
    ] {
        assert!(request.contains(part), "{part:?} is not in {request}");
    }
    let said = [
        "Where is order 1234567?",
        "Let me look it up.",
        "in the harbour",
        "It is in the harbour.",
        "Is that near?",
    ];
    let places: Vec<_> = said.iter().map(|words| request.find(words)).collect();
    assert!(
        places.iter().all(Option::is_some),
        "{places:?} in {request}"
    );
    assert!(places.is_sorted(), "{places:?} in {request}");
    assert!(!request.contains("only for people"), "{request}");
}

/// A call is asked once: only the engine knows whether it may be asked again.
pub async fn a_call_is_asked_once_whatever_comes_of_it(
    stage: impl AsyncFn(Play) -> RemoteProvider,
) {
    for act in [
        Act::BreaksOff(vec!["Once ".to_owned()]),
        Act::Fails(ModelFailureKind::Unavailable),
        Act::Fails(ModelFailureKind::Protocol),
        Act::Busy(std::time::Duration::from_millis(1)),
    ] {
        // Whoever asked again would be answered well.
        let acts = [act.clone(), Spoken::text(&["Here."]).act()];
        let remote = stage(Play::of(acts)).await;

        let came = ask(&*remote.provider, hello()).await;

        drop(came.failure());
        let heard = remote.other_side.heard();
        assert_eq!(heard.len(), 1, "{act:?}: {heard:?}");
    }
}

/// Whatever another run said stays with it.
pub async fn nothing_of_one_call_is_in_the_next(stage: impl AsyncFn(Play) -> RemoteProvider) {
    let acts = [Spoken::text(&["Yes."]).act(), Spoken::text(&["No."]).act()];
    let remote = stage(Play::of(acts)).await;
    let mut second = call([user(vec![Block::text("Is it cold?")])]);
    second.system.clear();
    second.tools.clear();
    second.max_tokens = None;

    for call in [hello(), second] {
        let came = ask(&*remote.provider, call).await;
        came.outcome.expect("a whole answer");
    }

    let heard = remote.other_side.heard();
    let request = &heard[1];
    assert!(request.contains("Is it cold?"), "{request}");
    for part in ["Good morning.", "in one sentence", "look_up_order", "1877"] {
        assert!(!request.contains(part), "{part:?} is in {request}");
    }
}

/// Silence before the answer, or within it, is not waited for for ever.
pub async fn waiting_has_limits(stage: impl AsyncFn(Play) -> RemoteProvider) {
    for words in [vec![], vec!["One ".to_owned(), "moment ".to_owned()]] {
        let play = Play::of([Act::Hangs(words.clone())]).impatient();
        let remote = stage(play).await;

        let came = ask(&*remote.provider, hello()).await;

        assert_eq!(came.stops(), 0);
        let failure = came.failure();
        assert_eq!(failure.kind, ModelFailureKind::Unavailable, "{failure}");
        in_time("the other side is let go of", remote.other_side.hung_up()).await;
    }
}

/// Nobody there is a failure like others.
pub async fn nobody_there_is_unavailable(stage: impl AsyncFn(Play) -> RemoteProvider) {
    let remote = stage(Play::of([])).await;
    remote.other_side.leave().await;

    let failure = ask(&*remote.provider, hello()).await.failure();

    assert_eq!(failure.kind, ModelFailureKind::Unavailable, "{failure}");
}

/// Who stops listening is not worked for any more: in the middle of an answer, and before it.
pub async fn a_dropped_call_is_let_go_of(stage: impl AsyncFn(Play) -> RemoteProvider) {
    let remote = stage(Play::of([Act::Hangs(vec!["One ".to_owned()])])).await;
    let stream = in_time("the answer's beginning", remote.provider.stream(hello())).await;
    let mut stream = stream.expect("it begins");
    let first = in_time("a word", stream.next()).await;
    first.expect("a word").expect("it does well");

    drop(stream);

    in_time("the other side is let go of", remote.other_side.hung_up()).await;

    let remote = stage(Play::of([Act::Hangs(vec![])])).await;
    let provider = std::sync::Arc::clone(&remote.provider);
    let asking = tokio::spawn(async move { provider.stream(hello()).await.map(drop) });
    in_time("the request", async {
        while remote.other_side.heard().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;

    asking.abort();

    in_time("the other side is let go of", remote.other_side.hung_up()).await;
}

/// The credentials are in no failure, even if the other side quotes them.
pub async fn a_failure_tells_no_secret(stage: impl AsyncFn(Play) -> RemoteProvider) {
    for kind in [
        ModelFailureKind::Auth,
        ModelFailureKind::Rejected,
        ModelFailureKind::Unavailable,
        ModelFailureKind::Protocol,
    ] {
        let remote = stage(Play::of([Act::Fails(kind)])).await;

        let failure = ask(&*remote.provider, hello()).await.failure();

        let told = format!("{failure:?}");
        assert!(!told.contains(&remote.secret), "{told}");
    }
}

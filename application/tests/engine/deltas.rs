//! What watchers see of an answer while it arrives.

use std::time::Duration;

use hango_domain::model::StreamEvent;
use hango_domain::run::RunStatus;
use hango_ports::event_sink::DeltaKind;

use crate::support::{Say, World, says, settings, texts};

fn text(text: &str) -> Say {
    Say::Event(StreamEvent::Text {
        index: 0,
        text: text.to_owned(),
    })
}

#[tokio::test(start_paused = true)]
async fn deltas_are_shown_at_most_every_50_ms_and_nothing_of_them_is_missing() {
    let world = World::new().await;
    let mut answer = Vec::new();
    for n in 0..100 {
        answer.push(text(&format!("{n} ")));
        answer.push(Say::Pause(Duration::from_millis(10)));
    }
    answer.extend(says("end"));
    world.provider.then(answer);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let deltas = world.watching.deltas(run.id);
    let whole: String = deltas
        .iter()
        .map(|(_, delta)| delta.text.as_str())
        .collect();
    assert_eq!(texts(&record.messages)[1], whole);
    // The end of the answer is not held back.
    let spaced = &deltas[..deltas.len() - 1];
    let gaps = spaced.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let shortest = gaps.min().expect("there are several");
    assert!(shortest >= Duration::from_millis(50), "{shortest:?}");
    assert!((15..=22).contains(&deltas.len()), "{}", deltas.len());
}

#[tokio::test(start_paused = true)]
async fn what_arrived_is_shown_although_nothing_follows_it() {
    let world = World::new().await;
    let pause = |millis| Say::Pause(Duration::from_millis(millis));
    let mut answer = vec![text("It "), pause(10), text("is "), pause(5000)];
    answer.extend(says("noon."));
    world.provider.then(answer);

    let process = world.start(settings()).await;
    let run = world.run().await;
    world.ended(run.id).await;
    process.drain().await;

    let deltas = world.watching.deltas(run.id);
    let begun = world.provider.calls()[0].at;
    let shown: Vec<_> = deltas
        .iter()
        .map(|(at, delta)| ((*at - begun).as_millis(), delta.text.as_str()))
        .collect();
    assert_eq!(shown[0], (0, "It "));
    assert_eq!(shown[1].1, "is ");
    assert!((50..=60).contains(&shown[1].0), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn reasoning_and_text_are_told_apart_and_neither_is_an_event_on_record() {
    let world = World::new().await;
    let thinking = StreamEvent::Thinking {
        index: 0,
        text: "The sun is high.".to_owned(),
    };
    let noon = StreamEvent::Text {
        index: 1,
        text: "Noon.".to_owned(),
    };
    let mut answer = vec![Say::Event(thinking), Say::Event(noon)];
    answer.extend(says("").into_iter().skip(1));
    world.provider.then(answer);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let deltas = world.watching.deltas(run.id);
    let shown: Vec<_> = deltas
        .iter()
        .map(|(_, it)| (it.index, it.kind, it.text.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (0, DeltaKind::Thinking, "The sun is high."),
            (1, DeltaKind::Text, "Noon."),
        ]
    );
    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(record.events.len(), 7);
}

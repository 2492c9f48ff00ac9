//! Stories against the rule about leases. The third run's first holder is killed, and its claim runs out.

use std::time::Duration;

use super::good::HOLDERS;
use super::{CLOCKS_JUMP, Doctored, event, run};
use crate::fault::{Fault, Hits};
use crate::history::story::Story;
use crate::moment::Moment;

const TAKEN: &[&str] = &["I5: run run-3 was taken from a holder whom nothing had happened to"];

pub(super) const ALL: &[Doctored] = &[
    Doctored::new(
        "a claim is taken to whose holder nothing happened",
        |story| story.faults.clear(),
        TAKEN,
    ),
    Doctored::new(
        "by a clock that jumps a lease may end at any time",
        |story| story.faults.clear(),
        &[],
    )
    .expecting(CLOCKS_JUMP),
    Doctored::new(
        "another one was killed",
        |story| {
            let fault = &mut story.faults[0];
            fault.hits = Hits::Dead(HOLDERS[1].to_owned());
            fault.held.clear();
        },
        TAKEN,
    ),
    Doctored::new(
        "it was held by the one who was killed, although nobody saw that then",
        |story| story.faults[0].held.clear(),
        &[],
    ),
    Doctored::new(
        "its holder was killed later",
        |story| {
            let fault = &mut story.faults[0];
            fault.from = fault.from.plus(Duration::from_secs(5));
        },
        TAKEN,
    ),
    Doctored::new(
        "somebody died before he said who he is, and the holder has said it",
        |story| story.faults[0].hits = Hits::Stranger,
        TAKEN,
    ),
    Doctored::new(
        "somebody died before he said who he is, and was the holder",
        |story| {
            story.faults[0].hits = Hits::Stranger;
            story.owners.remove(HOLDERS[0]);
        },
        &[],
    ),
    Doctored::new(
        "a connection was broken, which can be made again",
        |story| story.faults[0].hits = Hits::Nobody,
        TAKEN,
    ),
    Doctored::new(
        "the database was away for less than a lease lasts",
        |story| outage(story, Duration::from_millis(400), Hits::Everybody),
        TAKEN,
    ),
    Doctored::new(
        "the database was away for longer than a lease lasts",
        |story| outage(story, Duration::from_millis(1900), Hits::Everybody),
        &[],
    ),
    Doctored::new(
        "the holder heard nothing for longer than a lease lasts",
        |story| {
            let holder = Hits::Owner(HOLDERS[0].to_owned());
            outage(story, Duration::from_millis(1900), holder);
        },
        &[],
    ),
    Doctored::new(
        "another one heard nothing for longer than a lease lasts",
        |story| {
            let other = Hits::Owner(HOLDERS[1].to_owned());
            outage(story, Duration::from_millis(1900), other);
            story.faults[0].held.clear();
        },
        TAKEN,
    ),
    Doctored::new(
        "the database had been away, and the claim was made after that",
        |story| {
            let claimed = event(story, 3, "run.started").at;
            away(story, claimed.minus(Duration::from_millis(1100)));
        },
        TAKEN,
    ),
    Doctored::new(
        "the database had been away, and the claim outlived that",
        |story| {
            let claimed = event(story, 3, "run.started").at;
            away(story, claimed);
            let events = run(story, 3).events.iter_mut();
            for event in events.skip_while(|event| event.kind != "run.requeued") {
                event.at = event.at.plus(Duration::from_secs(5));
            }
        },
        TAKEN,
    ),
];

/// In place of the kill something lasted that long.
fn outage(story: &mut Story, lasts: Duration, hits: Hits) {
    let Fault { from, .. } = story.faults[0];
    let fault = &mut story.faults[0];
    fault.until = from.plus(lasts);
    fault.hits = hits;
}

/// In place of the kill the database was away until then, for long.
fn away(story: &mut Story, until: Moment) {
    let fault = &mut story.faults[0];
    fault.from = until.minus(Duration::from_secs(10));
    fault.until = until;
    fault.hits = Hits::Everybody;
}

//! The checker's own test: a good story, to which it does not object, and for each of its rules the same
//! story with one small change, to which it does. A rule that objects to nothing is worth nothing.

mod asks;
mod calls;
mod good;
mod leases;
mod promises;
mod runs;
mod sessions;

use std::time::Duration;

use super::story::{Story, Told};
use super::{Expect, late, objections};
use crate::fault::{Fault, Hits, STOPPED};
use crate::moment::Moment;
use crate::store::EventRow;

/// A good story with one change.
struct Doctored {
    /// What happens in it.
    what: &'static str,
    /// The change.
    change: fn(&mut Story),
    /// What its scenario may do.
    expect: Expect,
    /// How the objections that it brings begin, all of them.
    brings: &'static [&'static str],
}

impl Doctored {
    /// Of a scenario in which every run ends well.
    const fn new(
        what: &'static str,
        change: fn(&mut Story),
        brings: &'static [&'static str],
    ) -> Self {
        Self {
            what,
            change,
            expect: Expect::SUCCESS,
            brings,
        }
    }

    /// Of another scenario.
    const fn expecting(self, expect: Expect) -> Self {
        Self { expect, ..self }
    }

    /// What is wrong with the checker, if that is not what it says.
    fn failure(&self) -> Option<String> {
        let mut story = good::story();
        (self.change)(&mut story);
        let mut found = objections(&story, &self.expect);
        found.extend(late(&story, &self.expect));
        let expected = found.len() == self.brings.len()
            && found
                .iter()
                .zip(self.brings)
                .all(|(found, begins)| found.starts_with(begins));
        let Self { what, brings, .. } = self;
        (!expected).then(|| format!("{what}: it brings {found:#?}, not {brings:?}"))
    }
}

/// How many stories there are, and what is wrong with the checker.
pub(crate) fn failures() -> (usize, Vec<String>) {
    let good = Doctored::new("nothing is wrong", |_| {}, &[]);
    let all = [
        asks::ALL,
        calls::ALL,
        leases::ALL,
        promises::ALL,
        runs::ALL,
        sessions::ALL,
    ];
    let stories: Vec<_> = [&good]
        .into_iter()
        .chain(all.into_iter().flatten())
        .collect();
    let failures = stories.iter().filter_map(|story| story.failure());
    (stories.len(), failures.collect())
}

/// A scenario whose store has a clock of its own.
const CLOCKS_JUMP: Expect = Expect {
    one_clock: false,
    ..Expect::SUCCESS
};

/// A scenario in which runs may be cancelled.
const CANCELS: Expect = Expect {
    ends: |run| run["state"] == "succeeded" || run["state"] == "cancelled",
    ..Expect::SUCCESS
};

/// A run of the story, counting from 1.
fn run(story: &mut Story, n: usize) -> &mut Told {
    &mut story.runs[n - 1]
}

/// Its first event of that kind.
fn event<'a>(story: &'a mut Story, n: usize, kind: &str) -> &'a mut EventRow {
    let mut events = run(story, n).events.iter_mut();
    let event = events.find(|event| event.kind == kind);
    event.expect("the good story has it")
}

/// Changes a field of a run, and tells whoever saw its end the same.
fn set(story: &mut Story, n: usize, field: &str, value: impl Into<serde_json::Value>) {
    let told = run(story, n);
    told.run[field] = value.into();
    let (id, run) = (told.id.clone(), told.run.clone());
    story.clients.ended.insert(id, run);
}

/// Lets a run end as cancelled: what it had is kept.
fn cancel(story: &mut Story, n: usize) {
    set(story, n, "state", "cancelled");
    event(story, n, "run.succeeded").kind = "run.cancelled".into();
}

/// Somebody who held a run, counting from 1, wakes.
fn sleeper(story: &mut Story, n: usize, wakes: Moment) {
    let held = vec![(run(story, n).id.clone(), 1)];
    story.faults.push(Fault {
        what: STOPPED,
        from: wakes.minus(Duration::from_secs(5)),
        until: wakes,
        hits: Hits::Owner("holder-1".to_owned()),
        held,
    });
}

//! Random histories of some sessions, pruned now and then: what is gone is what the rule calls old, all of
//! it in the end, and everything else is as it was.

use std::collections::BTreeMap;
use std::time::Duration;

use hango_domain::conversation::Message;
use hango_domain::retention::{Retention, rows_of_run};
use hango_domain::run::{Change, Lease, Run};
use hango_domain::session::Session;
use hango_domain::{RunId, SessionId};
use hango_ports::run_store::{Pruned, RunStoreError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;

use super::{KEPT, found, prune, rename, say, step};
use crate::random::for_any;
use crate::{Fixture, Place, no_limits, owner};

type Checked = Result<(), TestCaseError>;

/// Whatever was done, said and ended, and whenever, a store removes what the rule calls old.
pub async fn any_history_leaves_what_the_rule_keeps(fixture: Fixture) {
    let fixture = &fixture;
    for_any(24, &vec(any_move(), 0..80), async |moves| {
        let mut history = History::begin(fixture).await;
        for step in moves {
            history.make(step).await?;
        }
        history.end().await
    });
}

/// What may happen; places are named by number, sessions and runs by any of those there were.
#[derive(Clone, Debug)]
enum Move {
    Open {
        place: usize,
    },
    Accept(Index),
    Claim,
    Finish(Index),
    Cancel(Index),
    /// A run is accepted, and executed at once where nothing stands before it.
    Execute(Index),
    Say(Index),
    Rename(Index),
    Pass {
        seconds: u64,
    },
    Prune {
        rows: u32,
    },
}

const PLACES: usize = 2;

fn any_move() -> impl Strategy<Value = Move> {
    let any = any::<Index>;
    prop_oneof![
        2 => (0..PLACES).prop_map(|place| Move::Open { place }),
        2 => any().prop_map(Move::Accept),
        2 => Just(Move::Claim),
        2 => any().prop_map(Move::Finish),
        1 => any().prop_map(Move::Cancel),
        8 => any().prop_map(Move::Execute),
        3 => any().prop_map(Move::Say),
        3 => any().prop_map(Move::Rename),
        4 => (1..KEPT.as_secs()).prop_map(|seconds| Move::Pass { seconds }),
        4 => (1..40_u32).prop_map(|rows| Move::Prune { rows }),
    ]
}

struct History<'a> {
    fixture: &'a Fixture,
    places: Vec<Place>,
    /// Every session there ever was, and every run, with their places.
    sessions: Vec<(usize, Session)>,
    runs: Vec<(usize, RunId)>,
    held: Vec<Lease>,
}

/// What there is of it.
#[derive(Clone, Debug, Default, PartialEq)]
struct There {
    sessions: BTreeMap<SessionId, (Session, Vec<Message>)>,
    runs: BTreeMap<RunId, Run>,
}

impl<'a> History<'a> {
    async fn begin(fixture: &'a Fixture) -> Self {
        let mut history = Self {
            fixture,
            places: Vec::new(),
            sessions: Vec::new(),
            runs: Vec::new(),
            held: Vec::new(),
        };
        for place in 0..PLACES {
            history.places.push(fixture.place().await);
            let session = history.places[place].session.clone();
            history.sessions.push((place, session));
        }
        history
    }

    async fn make(&mut self, step: Move) -> Checked {
        match step {
            Move::Open { place } => {
                let Place { owner, agent, .. } = &self.places[place];
                let session = self.fixture.session(owner, agent.id).await;
                self.sessions.push((place, session));
            }
            Move::Accept(which) => drop(self.accept(which).await?),
            Move::Claim => {
                let claimed = self.fixture.claim_all(owner(1), None, no_limits()).await;
                self.held
                    .extend(claimed.iter().map(|claimed| claimed.lease));
            }
            Move::Finish(which) if !self.held.is_empty() => {
                let lease = self.held.remove(which.index(self.held.len()));
                self.finish(lease).await;
            }
            Move::Execute(which) => {
                if let Some(run) = self.accept(which).await?
                    && let Some(claimed) = self.fixture.claim(run, owner(2)).await
                {
                    self.finish(claimed.lease).await;
                }
            }
            Move::Cancel(which) if !self.runs.is_empty() => {
                let (place, run) = *which.get(&self.runs);
                let by = self.places[place].owner;
                // One that ended refuses, one that is gone is not found.
                let _ = self.fixture.cancel(&by, run).await;
            }
            Move::Finish(_) | Move::Cancel(_) => {}
            Move::Say(which) => {
                let (place, session) = which.get(&self.sessions);
                // One with a running run refuses, one that is gone is not found.
                let _ = say(self.fixture, &self.places[*place], session).await;
            }
            Move::Rename(which) => {
                let (place, session) = which.get(&self.sessions);
                let _ = rename(self.fixture, &self.places[*place], session).await;
            }
            Move::Pass { seconds } => self.fixture.clock.advance(Duration::from_secs(seconds)),
            Move::Prune { rows } => self.prune(rows).await?,
        }
        Ok(())
    }

    async fn finish(&self, lease: Lease) {
        let end = Change::Finish(self.fixture.finish(lease, 1));
        self.fixture.written(end).await;
    }

    /// Accepts a run, if the session is there.
    async fn accept(&mut self, which: Index) -> Result<Option<RunId>, TestCaseError> {
        let (place, session) = which.get(&self.sessions);
        let (place, by) = (*place, &self.places[*place]);
        let there = found(self.fixture, by, session).await;
        let new = self.fixture.new_run(&by.owner, session.id);
        let accepted = self.fixture.try_accept(new).await;
        match (there, accepted) {
            (Some(_), Ok(accepted)) => {
                self.runs.push((place, accepted.run.id));
                Ok(Some(accepted.run.id))
            }
            (None, Err(RunStoreError::NotFound)) => Ok(None),
            other => Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }

    async fn prune(&self, rows: u32) -> Checked {
        let before = self.there().await;
        let old = before.old(self.fixture);

        let pruned = step(self.fixture, rows).await;

        let after = self.there().await;
        let gone = before.without(&after);
        prop_assert_eq!(
            pruned,
            Pruned {
                answers: 0,
                runs: gone.runs.len() as u64,
                sessions: gone.sessions.len() as u64,
            }
        );
        let mut both = after.clone();
        both.runs.extend(gone.runs.clone());
        both.sessions.extend(gone.sessions.clone());
        prop_assert_eq!(&both, &before, "what stays is as it was");
        for run in gone.runs.keys() {
            prop_assert!(old.runs.contains_key(run), "{:?}", before.runs[run]);
        }
        for session in gone.sessions.keys() {
            let what = &before.sessions[session];
            prop_assert!(old.sessions.contains_key(session), "{:?}", what);
        }
        if old.runs.is_empty() {
            fits(&gone.rows_of_sessions(), &old.rows_of_sessions(), rows)
        } else {
            prop_assert!(gone.sessions.is_empty());
            fits(&gone.rows_of_runs(), &old.rows_of_runs(), rows)
        }
    }

    /// Ends everything and lets it grow old: nothing is left then, for the next history neither.
    async fn end(mut self) -> Checked {
        for lease in std::mem::take(&mut self.held) {
            self.finish(lease).await;
        }
        for (place, run) in &self.runs {
            let by = self.places[*place].owner;
            let _ = self.fixture.cancel(&by, *run).await;
        }
        self.fixture.clock.advance(KEPT);
        prune(self.fixture).await;
        prop_assert_eq!(self.there().await, There::default());
        Ok(())
    }

    async fn there(&self) -> There {
        let mut there = There::default();
        for (place, session) in &self.sessions {
            let place = &self.places[*place];
            if let Some(session) = found(self.fixture, place, session).await {
                let messages = self.fixture.messages(place.seen(), session.id).await;
                there.sessions.insert(session.id, (session, messages));
            }
        }
        for (place, run) in &self.runs {
            let seen = self.places[*place].seen();
            let run = self.fixture.stores.runs.find(seen, *run).await;
            let run = run.expect("reads work");
            there.runs.extend(run.map(|run| (run.id, run)));
        }
        there
    }
}

impl There {
    /// What the rule calls old.
    fn old(&self, fixture: &Fixture) -> Self {
        let retention = Retention::new(KEPT).expect("long enough");
        let now = fixture.now();
        let mut old = self.clone();
        old.runs.retain(|_, run| retention.is_old_run(run, now));
        old.sessions.retain(|id, (session, messages)| {
            let runs = self.runs.values().filter(|run| run.session_id == *id);
            let said = messages.last().map(|message| message.created_at);
            retention.is_old_session(session, runs.count(), said, now)
        });
        old
    }

    /// What is not in `other`.
    fn without(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.runs.retain(|id, _| !other.runs.contains_key(id));
        let there = |id: &SessionId| other.sessions.contains_key(id);
        rest.sessions.retain(|id, _| !there(id));
        rest
    }

    fn rows_of_runs(&self) -> Vec<u64> {
        self.runs.values().map(rows_of_run).collect()
    }

    fn rows_of_sessions(&self) -> Vec<u64> {
        let messages = self.sessions.values().map(|(_, messages)| messages);
        messages.map(|it| 1 + it.len() as u64).collect()
    }
}

/// Whether a step was as long as it may be, and no longer, in whichever order things went.
fn fits(gone: &[u64], old: &[u64], rows: u32) -> Checked {
    let total: u64 = gone.iter().sum();
    let largest = gone.iter().max().copied().unwrap_or_default();
    let rows = u64::from(rows);
    prop_assert!(total - largest < rows, "{:?} of {:?}", gone, old);
    prop_assert!(
        gone.len() == old.len() || total >= rows,
        "{:?} of {:?}",
        gone,
        old
    );
    Ok(())
}

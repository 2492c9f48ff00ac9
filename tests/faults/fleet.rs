//! The replicas of a scenario, each in its place, and everything that was done to them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use rustix::process::Signal;

use crate::fault::{Fault, Gap, Hits, STOPPED};
use crate::moment::Moment;
use crate::replica::{Replica, Start};
use crate::store::{Claim, Facts};
use crate::truth::client::Addresses;

/// How long after its waking a replica gets no requests, and is not hit again.
const TRUSTED_AGAIN: Duration = Duration::from_secs(1);

/// Replicas; clones are the same ones.
#[derive(Clone)]
pub(crate) struct Fleet(Arc<Inner>);

struct Inner {
    places: Vec<Place>,
    addresses: Addresses,
    facts: Facts,
    log: Mutex<Log>,
    started: AtomicUsize,
}

struct Place {
    start: Start,
    replica: tokio::sync::Mutex<Option<(Replica, String)>>,
}

#[derive(Default)]
struct Log {
    faults: Vec<Fault>,
    /// The owners that replicas said they are.
    owners: HashSet<String>,
    /// Whether something outside of the replicas keeps all of them from executing.
    held_up: bool,
    serving: Serving,
    gaps: Vec<Gap>,
    logs: Vec<PathBuf>,
}

/// Whether somebody can execute, and since when.
#[derive(Clone, Copy)]
enum Serving {
    Since(Moment),
    NotSince(Moment),
}

impl Default for Serving {
    fn default() -> Self {
        Self::NotSince(Moment::now())
    }
}

impl Fleet {
    /// Places that are empty yet.
    pub(crate) fn new(starts: Vec<Start>, addresses: Addresses, facts: Facts) -> Self {
        let mut places = addresses.lock().unwrap_or_else(PoisonError::into_inner);
        *places = vec![None; starts.len()];
        drop(places);
        let place = |start| Place {
            start,
            replica: tokio::sync::Mutex::default(),
        };
        Self(Arc::new(Inner {
            places: starts.into_iter().map(place).collect(),
            addresses,
            facts,
            log: Mutex::default(),
            started: AtomicUsize::new(0),
        }))
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many places there are.
    pub(crate) fn size(&self) -> usize {
        self.0.places.len()
    }

    /// The places of those who listen.
    pub(crate) fn listening(&self) -> Vec<usize> {
        let addresses = self.0.addresses.lock();
        let addresses = addresses.unwrap_or_else(PoisonError::into_inner);
        let places = addresses.iter().enumerate();
        places
            .filter_map(|(place, address)| address.as_ref().map(|_| place))
            .collect()
    }

    fn list(&self, place: usize, address: Option<String>) {
        let addresses = self.0.addresses.lock();
        let mut addresses = addresses.unwrap_or_else(PoisonError::into_inner);
        addresses[place] = address;
        drop(addresses);
        self.look();
    }

    /// Notes whether somebody can execute.
    fn look(&self) {
        let somebody = !self.listening().is_empty();
        let mut log = self.log();
        let now = Moment::now();
        match (log.serving, somebody && !log.held_up) {
            (Serving::Since(_), false) => log.serving = Serving::NotSince(now),
            (Serving::NotSince(from), true) => {
                log.gaps.push(Gap { from, until: now });
                log.serving = Serving::Since(now);
            }
            (Serving::Since(_), true) | (Serving::NotSince(_), false) => {}
        }
    }

    /// Starts the replica in a place and waits until it listens.
    pub(crate) async fn start(&self, place: usize) -> anyhow::Result<()> {
        self.start_as(place, &self.0.places[place].start).await
    }

    /// Starts a replica that is not like the others.
    pub(crate) async fn start_as(&self, place: usize, start: &Start) -> anyhow::Result<()> {
        let listens = self.try_start_as(place, start).await?;
        anyhow::ensure!(listens, "replica {place} ended before it listened");
        Ok(())
    }

    /// Starts a replica that may end before it listens; whether it listens.
    pub(crate) async fn try_start_as(&self, place: usize, start: &Start) -> anyhow::Result<bool> {
        let mut held = self.0.places[place].replica.lock().await;
        let n = self.0.started.fetch_add(1, Ordering::SeqCst);
        let name = format!("replica-{place}-start-{n}");
        let (log, started) = Replica::start(start, &name).await?;
        self.log().logs.push(log);
        let died = || {
            self.note_death(
                "died at its start",
                Moment::now(),
                Hits::Stranger,
                Vec::new(),
            );
            false
        };
        let Some(mut replica) = started else {
            return Ok(died());
        };
        let Some(owner) = replica.owner().await? else {
            return Ok(died());
        };
        let address = replica.address.clone();
        self.log().owners.insert(owner.clone());
        *held = Some((replica, owner));
        drop(held);
        self.list(place, Some(address));
        Ok(true)
    }

    /// How a replica in a place is started.
    pub(crate) fn start_of(&self, place: usize) -> Start {
        self.0.places[place].start.clone()
    }

    /// Starts all of them.
    pub(crate) async fn start_all(&self) -> anyhow::Result<()> {
        let starts = (0..self.size()).map(|place| self.start(place));
        futures::future::try_join_all(starts).await.map(drop)
    }

    /// `kill -9`.
    pub(crate) async fn kill(&self, place: usize) -> anyhow::Result<()> {
        self.list(place, None);
        let victim = self.0.places[place].replica.lock().await.take();
        let (replica, owner) = victim.context("nobody is there to be killed")?;
        let at = replica.kill().await?;
        let held = self.0.facts.held_by(&owner).await?;
        self.note_death("kill -9", at, Hits::Dead(owner), held);
        Ok(())
    }

    /// Stops the clock of a replica, as far as it can see, for that long.
    pub(crate) async fn freeze(&self, place: usize, time: Duration) -> anyhow::Result<()> {
        let victim = self.0.places[place].replica.lock().await;
        let (replica, owner) = victim.as_ref().context("nobody is there to be stopped")?;
        let address = replica.address.clone();
        // As a load balancer does whose health checks are not answered.
        self.list(place, None);
        let from = Moment::now();
        replica.signal(Signal::STOP)?;
        let held = self.0.facts.held_by(owner).await?;
        tokio::time::sleep(time).await;
        replica.signal(Signal::CONT)?;
        self.note(Fault {
            what: STOPPED,
            from,
            until: Moment::now(),
            hits: Hits::Owner(owner.clone()),
            held,
        });
        drop(victim);
        // As a load balancer does that has to see it well for a while.
        tokio::time::sleep(TRUSTED_AGAIN).await;
        self.list(place, Some(address));
        Ok(())
    }

    /// Whether a replica stopped by itself.
    pub(crate) async fn is_stopped(&self, place: usize) -> anyhow::Result<bool> {
        let held = self.0.places[place].replica.lock().await;
        let (replica, _) = held.as_ref().context("nobody is there")?;
        replica.is_stopped()
    }

    /// Asks a replica to end, and waits until it has; how long that took, and whether it ended well.
    pub(crate) async fn drain(&self, place: usize) -> anyhow::Result<(Duration, bool)> {
        let victim = self.0.places[place].replica.lock().await.take();
        let (mut replica, _) = victim.context("nobody is there to be drained")?;
        let from = Moment::now();
        replica.signal(Signal::TERM)?;
        self.list(place, None);
        let (status, took) = replica.ended().await?;
        self.note(Fault {
            what: "SIGTERM",
            from,
            until: Moment::now(),
            hits: Hits::Nobody,
            held: Vec::new(),
        });
        Ok((took, status.success()))
    }

    /// Waits until the replica in a place has ended by itself. Whoever does not wait to the end finds it there.
    pub(crate) async fn died(&self, place: usize) -> anyhow::Result<()> {
        let mut victim = self.0.places[place].replica.lock().await;
        let (replica, owner) = victim.as_mut().context("nobody is there")?;
        replica.ended().await?;
        let at = Moment::now();
        let owner = owner.clone();
        let held = self.0.facts.held_by(&owner).await?;
        victim.take();
        drop(victim);
        self.list(place, None);
        self.note_death("died by itself", at, Hits::Dead(owner), held);
        Ok(())
    }

    /// The replicas that ended without being asked.
    pub(crate) async fn missing(&self) -> Vec<usize> {
        let mut missing = Vec::new();
        for place in self.listening() {
            let mut held = self.0.places[place].replica.lock().await;
            if !held.as_mut().is_some_and(|(replica, _)| replica.is_alive()) {
                missing.push(place);
            }
        }
        missing
    }

    /// Notes a fault.
    pub(crate) fn note(&self, fault: Fault) {
        self.log().faults.push(fault);
    }

    fn note_death(&self, what: &'static str, at: Moment, hits: Hits, held: Vec<Claim>) {
        self.note(Fault {
            what,
            from: at,
            until: at,
            hits,
            held,
        });
    }

    /// The owner that the replica in a place is.
    pub(crate) async fn owner_of(&self, place: usize) -> anyhow::Result<String> {
        let held = self.0.places[place].replica.lock().await;
        let (_, owner) = held.as_ref().context("nobody is there")?;
        Ok(owner.clone())
    }

    /// All owners that replicas said they are.
    pub(crate) fn owners(&self) -> HashSet<String> {
        self.log().owners.clone()
    }

    /// Something outside of the replicas keeps all of them from executing, or does not any more.
    pub(crate) fn hold_up(&self, held_up: bool) {
        self.log().held_up = held_up;
        self.look();
    }

    /// Since when somebody can execute, without a pause.
    pub(crate) fn serving_since(&self) -> Option<Moment> {
        match self.log().serving {
            Serving::Since(since) => Some(since),
            Serving::NotSince(_) => None,
        }
    }

    /// The times in which nobody could execute.
    pub(crate) fn gaps(&self) -> Vec<Gap> {
        self.log().gaps.clone()
    }

    /// Everything that was done on purpose.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.log().faults.clone()
    }

    /// The logs of all processes.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        self.log().logs.clone()
    }
}

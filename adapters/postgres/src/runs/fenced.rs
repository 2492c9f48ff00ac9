//! A write on a run's behalf, by whoever says that he holds it: one round trip, as a rule.
//!
//! It is decided upon what this process remembers of the run ([`held`](super::held)), and made by a
//! statement that carries the fence ([`store`](super::store)). Where nothing is remembered, where what is
//! remembered refuses or knows the write already, or where the row is not as remembered, the row is read
//! and the write decided again. Only that decision is final.

use std::sync::Arc;
use std::time::Instant;

use hango_domain::event::Event;
use hango_domain::run::{Applied, Change, Lease, Run};
use hango_domain::session::SessionLine;
use hango_ports::StoreFailure;
use hango_ports::run_store::{RunStoreError, Standing, Written};

use super::change::{clean, decide};
use super::held::Remembered;
use super::load::{Loaded, load};
use super::writes::Writes;
use super::{journal, store};
use crate::PostgresStore;
use crate::error::Error;

/// How often a write is decided anew because somebody else changed the run meanwhile: there are few who
/// may, and each does so once.
pub(super) const TRIES: u32 = 8;

impl PostgresStore {
    /// Makes a holder's write.
    pub(super) async fn fenced(
        &self,
        lease: Lease,
        mut change: Change,
    ) -> Result<Written, RunStoreError> {
        clean(&mut change, lease.run);
        if let Some(written) = self.by_memory(lease, &mut change).await? {
            return Ok(written);
        }
        for _ in 0..TRIES {
            if let Some(written) = self.by_row(lease, &change).await? {
                return Ok(written);
            }
        }
        Err(contended())
    }

    /// Decides upon what is remembered; `None` where that does not do.
    async fn by_memory(
        &self,
        lease: Lease,
        change: &mut Change,
    ) -> Result<Option<Written>, RunStoreError> {
        let (Some(remembered), Some(now)) = (self.held.take(lease), self.clock.now()) else {
            return Ok(None);
        };
        let Remembered {
            run,
            line,
            standing,
        } = remembered;
        if change.needs_closing(&run) {
            return Ok(None);
        }
        let mut writes = Writes::new(now);
        match decide(&mut writes, &run, line, change.clone()) {
            Ok((applied, line)) if !applied.repeated => {
                self.make(writes, applied, line, standing, true).await
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Reads the run and decides; `None` where somebody changed it meanwhile.
    async fn by_row(
        &self,
        lease: Lease,
        change: &Change,
    ) -> Result<Option<Written>, RunStoreError> {
        let (loaded, change) = self.loaded(lease, change.clone()).await?;
        let Loaded {
            run,
            damage,
            line,
            standing,
            now,
        } = loaded;
        let mut writes = Writes::new(now);
        let (applied, line) =
            decide(&mut writes, &run, line, change).map_err(RunStoreError::Refused)?;
        if applied.repeated {
            return Ok(Some(written(&applied.run, standing, Vec::new())));
        }
        self.make(writes, applied, line, standing, damage.is_none())
            .await
    }

    /// Writes what was decided, and remembers it if it is whole; `None` where the fence did not hold.
    async fn make(
        &self,
        writes: Writes,
        applied: Applied,
        line: SessionLine,
        known: Standing,
        whole: bool,
    ) -> Result<Option<Written>, RunStoreError> {
        let writes = Arc::new(writes);
        let asked = Instant::now();
        let stored = self.holders.run(move |conn| {
            let writes = Arc::clone(&writes);
            Box::pin(async move { store::store(conn, &writes).await })
        });
        let stored: Result<store::Stored, Error> = stored.await;
        let stored = stored?;
        if let Some(now) = stored.now {
            self.clock.told(now, asked);
        }
        let Some(standing) = stored.standing(applied.run.id, known) else {
            return Ok(None);
        };
        let written = written(&applied.run, standing, applied.events);
        if whole {
            self.held.keep(Remembered {
                run: applied.run,
                line,
                standing,
            });
        }
        Ok(Some(written))
    }

    /// The run, and the change with what closes the open turn should it end the run without its holder.
    /// What is read later than the run is as it was then, or the run has changed and the fence refuses.
    async fn loaded(
        &self,
        lease: Lease,
        change: Change,
    ) -> Result<(Loaded, Change), RunStoreError> {
        let clock = self.clock.clone();
        let change = Arc::new(change);
        self.holders
            .read(move |conn| {
                let (clock, change) = (clock.clone(), Arc::clone(&change));
                Box::pin(async move {
                    let loaded = load(conn, &clock, lease.run).await?;
                    let loaded = loaded.ok_or(RunStoreError::NotFound)?;
                    let mut change = Change::clone(&change);
                    if change.needs_closing(&loaded.run)
                        && let Some(closing) = change.closing_mut()
                    {
                        *closing = journal::closing(conn, &loaded.run).await?;
                    }
                    Ok((loaded, change))
                })
            })
            .await
    }
}

fn written(run: &Run, standing: Standing, events: Vec<Event>) -> Written {
    Written {
        status: run.state.status(),
        standing,
        events,
    }
}

/// Others changed the run again and again.
pub(super) fn contended() -> RunStoreError {
    let why = "others changed the run each time before the change was written";
    RunStoreError::Failure(StoreFailure::Unavailable(why.into()))
}

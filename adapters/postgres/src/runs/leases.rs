//! Keeping runs, and taking them from those who fell silent.
//!
//! A renewal is one update of all that is held. It waits for a row that somebody is writing (as a rule
//! the run's own holder, for a moment), but no longer than the kept connection waits for any lock: where
//! that was not enough it renews all but what is locked, and says nothing of that. The holder counts
//! its lease on, and the next beat tries again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hango_domain::run::{Change, Lease, Reclaim};
use hango_domain::{OwnerId, RunId};
use hango_ports::run_store::{Held, ReclaimRequest, Reclaimed, Renewal, RunStoreError, Standing};
use serde_json::json;
use sqlx::PgConnection;

use super::change::{decide, needs_closing};
use super::load::{Loaded, loaded_columns, loaded_joins, looked_up};
use super::writes::Writes;
use super::{journal, store};
use crate::clock::StoreClock;
use crate::error::{Error, code};
use crate::rows::{self, Document};

/// The claims that the owner names. Their `v` is always 1: see [`store::STORE`].
macro_rules! named {
    () => {
        "json_to_recordset($3) as h (v int, run_id uuid, attempt int)"
    };
}

/// The rule of [`Change::Renew`]: the claim is in force, and has not run out. Parameters: 1 what stands
/// in for the database's time, 2 the owner, 3 the claims that he names.
macro_rules! may_be_renewed {
    () => {
        "h.v = 1 and r.id = h.run_id and r.attempt = h.attempt
           and r.state = 'running' and r.owner_id = $2
           and r.lease_expires_at > coalesce($1, statement_timestamp())"
    };
}

/// Where the lease ends then; parameter 4 is in microseconds.
macro_rules! new_end {
    () => {
        "coalesce($1, statement_timestamp()) + $4 * interval '1 microsecond'"
    };
}

/// The claims of the owner that are in force, with what every write tells its holder, whether each was
/// `renewed`, and whether it ran out.
macro_rules! in_force {
    () => {
        concat!(
            " select r.id, r.owner_id, r.attempt, r.cancel_requested_at, r.created_by, \
              s.created_by as session_created_by, u.status as creator_status, \
              u.role as creator_role, t.status as tenant_status, renewed.id is not null as renewed, \
              r.lease_expires_at <= coalesce($1, statement_timestamp()) as ran_out
          from running_runs x",
            looked_up!("runs", "x.run_id", "r"),
            loaded_joins!(),
            " left join renewed on renewed.id = r.id
          where x.owner_id = $2"
        )
    };
}

/// Renews all, waiting for what is locked.
pub(super) const RENEW: &str = concat!(
    "with renewed as (
         update runs r set lease_expires_at = ",
    new_end!(),
    " from ",
    named!(),
    " where ",
    may_be_renewed!(),
    " returning r.id)",
    in_force!()
);

/// Renews all but what is locked.
pub(super) const RENEW_UNLOCKED: &str = concat!(
    "with unlocked as materialized (
         select r.id from runs r, ",
    named!(),
    " where ",
    may_be_renewed!(),
    " for no key update of r skip locked),
     renewed as (
         update runs r set lease_expires_at = ",
    new_end!(),
    " from unlocked where r.id = unlocked.id
         returning r.id)",
    in_force!()
);

/// The claims of an owner whose end was asked for.
pub(super) const CANCELS: &str = concat!(
    "select r.id, r.owner_id, r.attempt
     from running_runs x",
    looked_up!("runs", "x.run_id", "r"),
    " where x.owner_id = $1 and r.cancel_requested_at is not null"
);

/// Locks the runs that the sweep takes, with their sessions: of [`Change::Reclaim`] what concerns the
/// lease, asked again of what is locked. What others have locked is passed over. Parameters: 1 what
/// stands in for the database's time, 2 whether the lease must have run out, 3 how many.
pub(super) const SILENT: &str = concat!(
    "with silent as materialized (
         select r.id, r.lease_expires_at
         from running_runs x",
    looked_up!("runs", "x.run_id", "r"),
    "    where not $2 or r.lease_expires_at <= coalesce($1, statement_timestamp())
         order by r.lease_expires_at, r.id
         limit $3
     )
     select r.id
     from silent
     cross join lateral (
         select * from runs
         where runs.id = silent.id and runs.state = 'running'
           and (not $2 or runs.lease_expires_at <= coalesce($1, statement_timestamp()))
         for no key update skip locked) r
     cross join lateral (
         select from sessions where sessions.id = r.session_id for no key update skip locked) s
     order by silent.lease_expires_at, silent.id"
);

/// Reads the runs that were locked, the longest silent first.
pub(super) const LOCKED: &str = concat!(
    "select ",
    loaded_columns!(),
    " from unnest($2::uuid[]) with ordinality as locked (id, place)",
    looked_up!("runs", "locked.id", "r"),
    loaded_joins!(),
    " order by locked.place"
);

/// The SQLSTATE of a lock that was not got in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// What a renewal binds.
pub(super) struct Renewing {
    owner: OwnerId,
    held: Vec<Held>,
    ttl: Duration,
}

impl Renewing {
    pub(super) const fn new(owner: OwnerId, held: Vec<Held>, ttl: Duration) -> Self {
        Self { owner, held, ttl }
    }

    /// Renews what is in force of what is held, and finds what the owner forgot.
    pub(super) async fn renew(
        &self,
        conn: &mut PgConnection,
        clock: &StoreClock,
    ) -> Result<Renewal, Error> {
        match self.renew_by(RENEW, conn, clock).await {
            Err(Error::Sql(error)) if code(&error).as_deref() == Some(LOCK_NOT_AVAILABLE) => {
                tracing::warn!("a run is locked by somebody for long; its lease is not renewed");
                self.renew_by(RENEW_UNLOCKED, conn, clock).await
            }
            renewal => renewal,
        }
    }

    async fn renew_by(
        &self,
        statement: &'static str,
        conn: &mut PgConnection,
        clock: &StoreClock,
    ) -> Result<Renewal, Error> {
        let claims = self.held.iter();
        let claims = claims.map(|it| json!({"v": 1, "run_id": it.run, "attempt": it.attempt}));
        let rows = sqlx::query(statement)
            .bind(clock.given())
            .bind(self.owner.0)
            .bind(Document(claims.collect::<Vec<_>>()))
            .bind(i64::try_from(self.ttl.as_micros()).unwrap_or(i64::MAX))
            .fetch_all(conn)
            .await?;
        let in_force = rows::all(&rows, |row| {
            let Lease { run, attempt, .. } = rows::lease(row)?;
            let standing = rows::standing(row)?;
            Ok((Held { run, attempt }, (standing, rows::renewed(row)?)))
        })?;
        Ok(self.told_apart(in_force.into_iter().collect()))
    }

    /// What is locked is in force and was neither renewed nor did it run out: of that nothing is said.
    fn told_apart(&self, mut in_force: BTreeMap<Held, (Standing, Outcome)>) -> Renewal {
        let mut renewal = Renewal::default();
        for held in &self.held {
            match in_force.remove(held) {
                Some((standing, Outcome::Renewed)) => renewal.renewed.push((*held, standing)),
                Some((_, Outcome::Locked)) => {}
                Some((_, Outcome::RanOut)) | None => renewal.lost.push(*held),
            }
        }
        let forgotten = in_force.into_keys().map(|held| Lease {
            run: held.run,
            owner: self.owner,
            attempt: held.attempt,
        });
        renewal.orphans = forgotten.collect();
        renewal
    }
}

/// What became of a claim in force.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// It holds for another while.
    Renewed,
    /// It ran out before.
    RanOut,
    /// Somebody has locked the run.
    Locked,
}

pub(super) async fn cancels(conn: &mut PgConnection, owner: OwnerId) -> Result<Vec<Lease>, Error> {
    let rows = sqlx::query(CANCELS).bind(owner.0).fetch_all(conn).await?;
    rows::all(&rows, rows::lease)
}

/// Takes runs back, the longest silent first. One whose row cannot be read is left where it is, and
/// said in the log.
pub(super) async fn reclaim(
    conn: &mut PgConnection,
    clock: &StoreClock,
    request: ReclaimRequest,
) -> Result<Vec<Reclaimed>, RunStoreError> {
    let silent = silent(conn, clock, request).await?;
    let Some(now) = silent.first().map(|it| it.now) else {
        return Ok(Vec::new());
    };
    let mut writes = Writes::new(now);
    let mut reclaimed = Vec::with_capacity(silent.len());
    for Loaded { run, line, .. } in silent {
        let Some(previous) = run.lease() else {
            continue;
        };
        let mut change = Change::Reclaim(Reclaim {
            max_stalled: request.max_stalled,
            expired_only: request.expired_only,
            closing: None,
        });
        if needs_closing(&mut change, &run)
            && let Some(closing) = change.closing_mut()
        {
            *closing = journal::closing(conn, &run).await?;
        }
        let (applied, _) =
            decide(&mut writes, &run, line, change).map_err(RunStoreError::Refused)?;
        reclaimed.push(Reclaimed {
            previous,
            resume_turn: applied.run.progress.resume_turn,
            status: applied.run.state.status(),
            events: applied.events,
        });
    }
    let stored = store::store(conn, &writes).await?;
    reclaimed.retain(|it| stored.has(it.previous.run));
    Ok(reclaimed)
}

/// Locks what is silent, and reads it then: a statement that locks reads the messages as they were
/// before it got the lock.
async fn silent(
    conn: &mut PgConnection,
    clock: &StoreClock,
    request: ReclaimRequest,
) -> Result<Vec<Loaded>, Error> {
    let rows = sqlx::query(SILENT)
        .bind(clock.given())
        .bind(request.expired_only)
        .bind(i64::from(request.limit))
        .fetch_all(&mut *conn)
        .await?;
    let locked: Vec<RunId> = rows::all(&rows, rows::run_id)?;
    if locked.is_empty() {
        return Ok(Vec::new());
    }
    let locked: Vec<_> = locked.into_iter().map(|run| run.0).collect();
    let rows = sqlx::query(LOCKED)
        .bind(clock.given())
        .bind(locked)
        .fetch_all(conn)
        .await?;
    readable(&rows, "a run cannot be taken back")
}

/// What can be read of `rows`; of the others the log is told that `what`.
pub(super) fn readable(rows: &[sqlx::postgres::PgRow], what: &str) -> Result<Vec<Loaded>, Error> {
    let mut loaded = Vec::with_capacity(rows.len());
    for row in rows {
        match Loaded::new(row) {
            Ok(run) => loaded.push(run),
            Err(error @ Error::Unreadable { .. }) => tracing::error!(%error, "{what}"),
            Err(error) => return Err(error),
        }
    }
    Ok(loaded)
}

/// The leases that a renewal found in force.
pub(super) fn in_force(owner: OwnerId, renewal: &Renewal) -> BTreeSet<Lease> {
    let renewed = renewal.renewed.iter().map(|(held, _)| Lease {
        run: held.run,
        owner,
        attempt: held.attempt,
    });
    renewed.chain(renewal.orphans.iter().copied()).collect()
}

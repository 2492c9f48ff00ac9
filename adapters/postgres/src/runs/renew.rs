//! Keeping runs, and learning whose end was asked for.
//!
//! A renewal is one update of all that is held. It waits for a row that somebody is writing (as a rule
//! the run's own holder, for a moment), but no longer than the kept connection waits for any lock: where
//! that was not enough it renews all but what is locked, and says nothing of that. The holder counts
//! its lease on, and the next beat tries again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hango_domain::OwnerId;
use hango_domain::run::Lease;
use hango_ports::run_store::{Held, Renewal, Standing};
use serde_json::json;
use sqlx::PgConnection;

use super::load::{loaded_joins, looked_up};
use crate::clock::StoreClock;
use crate::error::{Error, is_lock_timeout};
use crate::rows::{self, Document};

/// The claims that the owner names. Their `v` is always 1: see [`STORE`](super::store::STORE).
macro_rules! named {
    () => {
        "json_to_recordset($3) as h (v int, run_id uuid, attempt int)"
    };
}

/// The rule of [`Change::Renew`](hango_domain::run::Change::Renew): the claim is in force, and has not run
/// out. Parameters: 1 what stands in for the database's time, 2 the owner, 3 the claims that he names.
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
            Err(Error::Sql(error)) if is_lock_timeout(&error) => {
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

/// The leases that a renewal found in force.
pub(super) fn in_force(owner: OwnerId, renewal: &Renewal) -> BTreeSet<Lease> {
    let renewed = renewal.renewed.iter().map(|(held, _)| Lease {
        run: held.run,
        owner,
        attempt: held.attempt,
    });
    renewed.chain(renewal.orphans.iter().copied()).collect()
}

//! Keeping runs, and taking them from those who fell silent.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hango_domain::queue::SetAside;
use hango_domain::run::{Change, Lease, Reclaim};
use hango_domain::{OwnerId, RunId, Timestamp};
use hango_ports::run_store::{Held, ReclaimRequest, Reclaimed, Renewal, RunStoreError, Standing};
use serde_json::json;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::types::Json;

use super::{change, table};
use crate::error::Error;
use crate::rows;

/// The rule of [`Change::Renew`] for many runs in one statement: the claim is in force, and has not run
/// out. Returns the runs for which it holds.
pub(super) const RENEW: &str = "update runs set lease_expires_at = ?1
     where state = 'running' and owner_id = ?2 and lease_expires_at > ?3
       and (id, attempt) in (select value ->> 0, value ->> 1 from json_each(?4))
     returning id";

/// The claims of an owner that are in force, with what every write tells its holder.
pub(super) const IN_FORCE: &str =
    "select r.id, r.owner_id, r.attempt, r.cancel_requested_at, r.created_by, \
         s.created_by as session_created_by, u.status as creator_status, \
         u.role as creator_role, t.status as tenant_status
     from runs r indexed by runs_running
     join sessions s on s.id = r.session_id
     join users u on u.id = r.created_by
     join tenants t on t.id = r.tenant_id
     where r.state = 'running' and r.owner_id = ?";

/// The claims of an owner whose end was asked for.
pub(super) const CANCELS: &str = "select id, owner_id, attempt from runs indexed by runs_running
     where state = 'running' and owner_id = ? and cancel_requested_at is not null";

/// The runs that the sweep takes: of [`Change::Reclaim`] what concerns the lease.
pub(super) const SILENT: &str = "select id, owner_id, attempt from runs indexed by runs_running
     where state = 'running' and (not ?1 or lease_expires_at <= ?2)
       and id not in (select value from json_each(?4))
     order by lease_expires_at, id
     limit ?3";

/// Renews what is in force of `held`, and finds what the owner forgot.
pub(crate) async fn renew(
    conn: &mut SqliteConnection,
    owner: OwnerId,
    held: &[Held],
    ttl: Duration,
    now: Timestamp,
) -> Result<Renewal, Error> {
    let renewed = push_away(conn, owner, held, ttl, now).await?;
    let mut in_force = in_force(conn, owner).await?;
    let mut renewal = Renewal::default();
    for held in held {
        match in_force.get(held) {
            Some(standing) if renewed.contains(&held.run) => {
                renewal.renewed.push((*held, *standing));
            }
            Some(_) | None => renewal.lost.push(*held),
        }
    }
    for held in held {
        in_force.remove(held);
    }
    renewal.orphans = in_force
        .into_keys()
        .map(|held| Lease {
            run: held.run,
            owner,
            attempt: held.attempt,
        })
        .collect();
    Ok(renewal)
}

async fn push_away(
    conn: &mut SqliteConnection,
    owner: OwnerId,
    held: &[Held],
    ttl: Duration,
    now: Timestamp,
) -> Result<Vec<RunId>, Error> {
    let pairs = held.iter().map(|held| json!([held.run, held.attempt]));
    let rows = sqlx::query(RENEW)
        .bind(now.plus(ttl).as_micros())
        .bind(owner.to_string())
        .bind(now.as_micros())
        .bind(Json(pairs.collect::<Vec<_>>()))
        .fetch_all(conn)
        .await?;
    rows::all(&rows, rows::run_id)
}

async fn in_force(
    conn: &mut SqliteConnection,
    owner: OwnerId,
) -> Result<HashMap<Held, Standing>, Error> {
    let rows = sqlx::query(IN_FORCE)
        .bind(owner.to_string())
        .fetch_all(conn)
        .await?;
    let rows = rows::all(&rows, |row| {
        let Lease { run, attempt, .. } = rows::lease(row)?;
        Ok((Held { run, attempt }, rows::standing(row)?))
    })?;
    Ok(rows.into_iter().collect())
}

pub(crate) async fn cancels(readers: &SqlitePool, owner: OwnerId) -> Result<Vec<Lease>, Error> {
    let rows = sqlx::query(CANCELS)
        .bind(owner.to_string())
        .fetch_all(readers)
        .await?;
    rows::all(&rows, rows::lease)
}

/// Takes runs back, the longest silent first. One whose row cannot be read is left where it is, and set
/// aside.
pub(crate) async fn reclaim(
    conn: &mut SqliteConnection,
    aside: &SetAside,
    request: ReclaimRequest,
    now: Timestamp,
) -> Result<Vec<Reclaimed>, RunStoreError> {
    let mut reclaimed = Vec::new();
    for previous in silent(conn, aside, request, now).await? {
        let what = "a run cannot be taken back";
        let Some(loaded) = table::load_or_aside(conn, previous.run, aside, what).await? else {
            continue;
        };
        let expired_at = loaded.run.lease_expires_at().unwrap_or(now);
        let change = Change::Reclaim(Reclaim {
            max_stalled: request.max_stalled,
            expired_only: request.expired_only,
            closing: None,
        });
        let applied = change::make(conn, loaded, change, now).await?.applied;
        let run = applied.run;
        reclaimed.push(Reclaimed {
            previous,
            expired_at,
            resume_turn: run.progress.resume_turn,
            status: run.state.status(),
            events: applied.events,
        });
    }
    Ok(reclaimed)
}

async fn silent(
    conn: &mut SqliteConnection,
    aside: &SetAside,
    request: ReclaimRequest,
    now: Timestamp,
) -> Result<Vec<Lease>, Error> {
    let rows = sqlx::query(SILENT)
        .bind(request.expired_only)
        .bind(now.as_micros())
        .bind(request.limit)
        .bind(Json(aside.runs(Instant::now())))
        .fetch_all(conn)
        .await?;
    rows::all(&rows, rows::lease)
}

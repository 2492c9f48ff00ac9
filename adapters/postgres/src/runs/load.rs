//! Reading runs to change them, with all that a change has to know.

use std::time::Instant;

use hango_domain::access::Visibility;
use hango_domain::queue::SetAside;
use hango_domain::run::Run;
use hango_domain::session::SessionLine;
use hango_domain::{RunId, SessionId, Timestamp};
use hango_ports::run_store::Standing;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows::{self, ReadRun};

/// A run with all that a change of it has to know.
pub(crate) struct Loaded {
    pub(crate) run: Run,
    /// See [`ReadRun::damage`].
    pub(crate) damage: Option<Error>,
    pub(crate) line: SessionLine,
    pub(crate) standing: Standing,
    /// The moment at which it was read.
    pub(crate) now: Timestamp,
}

impl Loaded {
    /// Out of the columns of [`loaded_columns`].
    pub(crate) fn new(row: &PgRow) -> Result<Self, Error> {
        let ReadRun { run, damage } = rows::run(row)?;
        Ok(Self {
            run,
            damage,
            line: rows::session_line(row)?,
            standing: rows::standing(row)?,
            now: rows::now(row)?,
        })
    }

    /// The same; `None` for one that cannot be read, which is set aside, and said in the log as `what`.
    pub(crate) fn or_aside(
        row: &PgRow,
        aside: &SetAside,
        what: &str,
    ) -> Result<Option<Self>, Error> {
        match Self::new(row) {
            Ok(loaded) => Ok(Some(loaded)),
            Err(error @ Error::Unreadable { .. }) => {
                if aside.add(rows::run_id(row)?, Instant::now()) {
                    tracing::error!(%error, "{what}");
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// One row, looked up for itself (`offset 0` has the planner leave it so): it may not become a join that
/// reads all of the table's rows, however few they seem to be when the statement is planned.
macro_rules! looked_up {
    ($table:literal, $id:literal, $as:literal) => {
        concat!(
            " cross join lateral (select * from ",
            $table,
            " where ",
            $table,
            ".id = ",
            $id,
            " offset 0) ",
            $as
        )
    };
}
pub(super) use looked_up;

/// The columns of a run to be changed, for [`loaded_joins`]. Parameter 1 stands in for the database's
/// time where it is not null. `last_seq` is the session's or that of the last message, whichever is
/// greater: while a run is running its session's row is behind, and where that row was waited for it is
/// newer than the messages, which were read before the wait.
macro_rules! loaded_columns {
    () => {
        concat!(
            crate::rows::run_columns!(),
            ", s.pending_runs, s.running_run, s.last_run_no, \
               greatest(s.last_seq, (select m.seq from messages m \
                   where m.session_id = r.session_id order by m.seq desc limit 1)) as last_seq, \
               s.created_by as session_created_by, \
               u.status as creator_status, u.role as creator_role, t.status as tenant_status, \
               coalesce($1, clock_timestamp()) as now"
        )
    };
}
pub(super) use loaded_columns;

/// The rows beside `r` that have [`loaded_columns`]: see [`looked_up`].
macro_rules! loaded_joins {
    () => {
        concat!(
            looked_up!("sessions", "r.session_id", "s"),
            looked_up!("users", "r.created_by", "u"),
            looked_up!("tenants", "r.tenant_id", "t")
        )
    };
}
pub(super) use loaded_joins;

pub(super) const LOAD: &str = concat!(
    "select ",
    loaded_columns!(),
    " from runs r",
    loaded_joins!(),
    " where r.id = $2"
);

/// The same where the caller sees the run.
pub(super) const LOAD_SEEN: &str = concat!(
    "select ",
    loaded_columns!(),
    " from runs r",
    loaded_joins!(),
    " where r.id = $2 and s.tenant_id = $3 and ($4::uuid is null or s.created_by = $4)"
);

/// The runs of a session that have not ended, in their order.
pub(super) const PENDING: &str = concat!(
    "select ",
    loaded_columns!(),
    " from (select run_id from queued_runs where session_id = $2
            union all
            select run_id from running_runs where session_id = $2) as pending",
    looked_up!("runs", "pending.run_id", "r"),
    loaded_joins!(),
    " order by r.session_no"
);

/// A run, whoever may see it.
pub(crate) async fn load(
    conn: &mut PgConnection,
    clock: &StoreClock,
    run: RunId,
) -> Result<Option<Loaded>, Error> {
    let asked = Instant::now();
    let row = sqlx::query(LOAD)
        .bind(clock.given())
        .bind(run.0)
        .fetch_optional(conn)
        .await?;
    let loaded = row.as_ref().map(Loaded::new).transpose()?;
    told(clock, loaded.as_ref(), asked);
    Ok(loaded)
}

/// A run that the caller sees.
pub(crate) async fn load_seen(
    conn: &mut PgConnection,
    clock: &StoreClock,
    seen: Visibility,
    run: RunId,
) -> Result<Option<Loaded>, Error> {
    let asked = Instant::now();
    let row = sqlx::query(LOAD_SEEN)
        .bind(clock.given())
        .bind(run.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .fetch_optional(conn)
        .await?;
    let loaded = row.as_ref().map(Loaded::new).transpose()?;
    told(clock, loaded.as_ref(), asked);
    Ok(loaded)
}

/// Whether there is such a run, whoever may see it.
pub(crate) async fn exists(conn: &mut PgConnection, run: RunId) -> Result<bool, Error> {
    let found = sqlx::query("select from runs where id = $1")
        .bind(run.0)
        .fetch_optional(conn)
        .await?;
    Ok(found.is_some())
}

/// The runs of a session that have not ended, in their order. The session is locked, and so is the one
/// that is running: nobody else changes them.
pub(crate) async fn pending(
    conn: &mut PgConnection,
    clock: &StoreClock,
    session: SessionId,
) -> Result<Vec<Loaded>, Error> {
    let rows = sqlx::query(PENDING)
        .bind(clock.given())
        .bind(session.0)
        .fetch_all(conn)
        .await?;
    rows::all(&rows, Loaded::new)
}

fn told(clock: &StoreClock, loaded: Option<&Loaded>, asked: Instant) {
    if let Some(loaded) = loaded {
        clock.told(loaded.now, asked);
    }
}

//! The schema: which migrations the database has, and moving it on or a step back.
//!
//! * Each migration is one transaction together with the note that it was applied: whoever dies in one
//!   leaves the steps before it, and the next one goes on from there.
//! * Who changes the schema holds a lock of the database, so that processes which start at once do it
//!   one after the other. They ask for it again and again: to wait inside the database would hold up
//!   what waits for every transaction to end.
//! * A step that cannot lock a table soon gives up, or everybody who comes after it would wait with it.
//! * Steps only add, so that the build before them works with what they made: a process of an older
//!   build starts on a newer schema, and says so. It does not change it: a step that it knows and the
//!   schema lacks was written for a schema without those that it does not know.
//!
//! All of it needs a session, so it goes past a pooler.

use std::time::Duration;

use hango_ports::store::BoxError;
use sqlx::migrate::{Migrate, Migrator};
use sqlx::{ConnectOptions, Connection, FromRow, PgConnection};
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};

use crate::PostgresStore;
use crate::error::{Error as StoreError, driver, is_lock_timeout};

static STEPS: Migrator = sqlx::migrate!("../../migrations/postgres");

/// Where the driver notes what was applied.
const NOTES: &str = "_sqlx_migrations";

/// The lock's number in the database: `hango mi`.
const LOCK: i64 = 0x6861_6e67_6f20_6d69;

/// How often whoever waits for the lock asks for it, and for how long.
const ASK_AGAIN: Duration = Duration::from_millis(100);
const ASK_FOR: Duration = Duration::from_mins(2);

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A step of the schema.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Migration {
    /// Its number; steps are applied in this order.
    pub version: i64,
    /// What it brings.
    pub description: String,
}

/// A step that the schema has.
#[derive(FromRow)]
struct Applied {
    version: i64,
    checksum: Vec<u8>,
}

/// Why the schema was not changed, or not all the way.
#[derive(Debug, Error)]
pub enum MigrateError {
    /// A newer build made this schema, and this one has steps that it lacks, or was asked to undo it.
    #[error(
        "the database has migration {version}, which this build does not know: use a newer one"
    )]
    Newer {
        /// The unknown step.
        version: i64,
    },
    /// A step was applied that is not the one this build has under its number.
    #[error("migration {version} was applied in another form than this build has")]
    Changed {
        /// The step.
        version: i64,
    },
    /// Another process changes the schema, or uses what a step has to lock. What was done stays done.
    #[error("the schema is in use: try again when {holder} has ended")]
    Busy {
        /// Who holds it.
        holder: &'static str,
    },
    /// The database said no, or nothing.
    #[error("the schema could not be read or changed")]
    Failed(#[source] BoxError),
}

impl From<sqlx::migrate::MigrateError> for MigrateError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        if driver(&error).is_some_and(is_lock_timeout) {
            return Self::Busy {
                holder: "a long transaction",
            };
        }
        Self::Failed(error.into())
    }
}

impl From<sqlx::Error> for MigrateError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<StoreError> for MigrateError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl PostgresStore {
    /// Brings the schema to what this build needs; returns the steps that this took.
    pub async fn migrate(&self) -> Result<Vec<Migration>, MigrateError> {
        let mut conn = self.migrating().await?;
        conn.ensure_migrations_table(NOTES).await?;
        let applied = applied(&mut conn).await?;
        let pending = lacking(&applied);
        if let Some(version) = unknown(&applied).next()
            && !pending.is_empty()
        {
            return Err(MigrateError::Newer { version });
        }
        warn_if_newer(&applied);
        for step in STEPS.iter().filter(|step| is_up(step)) {
            match applied.iter().find(|done| done.version == step.version) {
                Some(done) if done.checksum != *step.checksum => {
                    let version = step.version;
                    return Err(MigrateError::Changed { version });
                }
                Some(_) => {}
                None => drop(conn.apply(NOTES, step).await?),
            }
        }
        conn.close().await?;
        Ok(pending)
    }

    /// Takes the last `steps` steps back, with all that they hold; returns them, last first.
    pub async fn migrate_down(&self, steps: usize) -> Result<Vec<Migration>, MigrateError> {
        let mut conn = self.migrating().await?;
        let applied = applied(&mut conn).await?;
        if let Some(version) = unknown(&applied).next() {
            return Err(MigrateError::Newer { version });
        }
        let mut undone = Vec::new();
        for done in applied.iter().rev().take(steps) {
            let mut downs = STEPS.iter().filter(|step| !is_up(step));
            if let Some(step) = downs.find(|step| step.version == done.version) {
                conn.revert(NOTES, step).await?;
                undone.extend(known(done.version));
            }
        }
        conn.close().await?;
        Ok(undone)
    }

    /// The steps that the schema lacks, first one first.
    pub async fn pending(&self) -> Result<Vec<Migration>, MigrateError> {
        let applied = self.applied().await?;
        warn_if_newer(&applied);
        Ok(lacking(&applied))
    }

    /// The last step that the schema has; `None` before the first.
    pub async fn schema_version(&self) -> Result<Option<i64>, MigrateError> {
        let applied = self.applied().await?;
        Ok(applied.last().map(|done| done.version))
    }

    async fn applied(&self) -> Result<Vec<Applied>, MigrateError> {
        self.pool
            .read(|conn| Box::pin(async { applied(conn).await }))
            .await
    }

    /// A connection that may change the schema, alone.
    async fn migrating(&self) -> Result<PgConnection, MigrateError> {
        // Whoever fills a table anew may take his time, once he has it.
        let options = self.direct.clone().options([("statement_timeout", "0")]);
        let connected = timeout(CONNECT, options.connect()).await;
        let mut conn = connected.map_err(|late| MigrateError::Failed(late.into()))??;

        let given_up = Instant::now() + ASK_FOR;
        loop {
            let locked: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
                .bind(LOCK)
                .fetch_one(&mut conn)
                .await?;
            if locked {
                return Ok(conn);
            }
            if Instant::now() > given_up {
                return Err(MigrateError::Busy {
                    holder: "another process that changes it",
                });
            }
            sleep(ASK_AGAIN).await;
        }
    }
}

/// Every step that this build knows, first one first: what a new database gets.
#[must_use]
pub fn migrations() -> Vec<Migration> {
    let ups = STEPS.iter().filter(|step| is_up(step));
    ups.map(|step| Migration {
        version: step.version,
        description: step.description.to_string(),
    })
    .collect()
}

// The driver's own way up and down is not used: its futures may not move between threads.

fn is_up(step: &sqlx::migrate::Migration) -> bool {
    step.migration_type.is_up_migration()
}

/// The steps that the schema has, in order.
async fn applied(conn: &mut PgConnection) -> Result<Vec<Applied>, MigrateError> {
    let noted: bool = sqlx::query_scalar("select to_regclass($1) is not null")
        .bind(NOTES)
        .fetch_one(&mut *conn)
        .await?;
    if !noted {
        return Ok(Vec::new());
    }
    let applied = sqlx::query_as("select version, checksum from _sqlx_migrations order by version")
        .fetch_all(conn)
        .await?;
    Ok(applied)
}

fn known(version: i64) -> Option<Migration> {
    migrations()
        .into_iter()
        .find(|step| step.version == version)
}

/// The steps of newer builds, first one first.
fn unknown(applied: &[Applied]) -> impl Iterator<Item = i64> {
    let applied = applied.iter().map(|done| done.version);
    applied.filter(|version| known(*version).is_none())
}

/// Tells whoever reads the log that this build is older than the schema.
fn warn_if_newer(applied: &[Applied]) {
    let versions: Vec<_> = unknown(applied).collect();
    if !versions.is_empty() {
        tracing::warn!(
            ?versions,
            "a newer build made the schema; this one goes on with it"
        );
    }
}

fn lacking(applied: &[Applied]) -> Vec<Migration> {
    let mut steps = migrations();
    steps.retain(|step| applied.iter().all(|done| done.version != step.version));
    steps
}

//! The schema: which migrations the database has, and moving it on or a step back.
//!
//! * Each migration is one transaction together with the note that it was applied: whoever dies in one
//!   leaves the steps before it, and the next one goes on from there.
//! * Who changes the schema holds a lock of the database, so that processes which start at once do it
//!   one after the other. They ask for it again and again: to wait inside the database would hold up
//!   what waits for every transaction to end.
//! * A step that cannot lock a table soon gives up, or everybody who comes after it would wait with it.
//! * Steps only add, so that the build before them works with what they made: a process of an older
//!   build starts on a newer schema. It does not change it.
//!
//! All of it needs a session, so it goes past a pooler.

use std::time::Duration;

use hango_ports::store::BoxError;
use sqlx::migrate::Migrator;
use sqlx::{ConnectOptions, Connection, PgConnection};
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};

use crate::PostgresStore;
use crate::error::{Error as StoreError, is_lock_timeout};

/// The lock's number in the database: `hango mi`.
const LOCK: i64 = 0x6861_6e67_6f20_6d69;

/// How often whoever waits for the lock asks for it, and for how long.
const ASK_AGAIN: Duration = Duration::from_millis(100);
const ASK_FOR: Duration = Duration::from_secs(120);

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
        use sqlx::migrate::MigrateError as E;
        match error {
            E::VersionMissing(version) => Self::Newer { version },
            E::VersionMismatch(version) => Self::Changed { version },
            E::ExecuteMigration(error, _) if is_lock_timeout(&error) => Self::Busy {
                holder: "a long transaction",
            },
            other => Self::Failed(other.into()),
        }
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
        let applied = applied(&mut conn).await?;
        let pending = lacking(&applied);
        match unknown(&applied) {
            Some(version) if !pending.is_empty() => return Err(MigrateError::Newer { version }),
            Some(version) => tracing::warn!(
                version,
                "a newer build made the schema; this one goes on with it"
            ),
            None => {}
        }
        steps().run(&mut conn).await?;
        conn.close().await?;
        Ok(pending)
    }

    /// Takes the last `steps` steps back, with all that they hold; returns them, last first.
    pub async fn migrate_down(&self, count: usize) -> Result<Vec<Migration>, MigrateError> {
        let mut conn = self.migrating().await?;
        let applied = applied(&mut conn).await?;
        if let Some(version) = unknown(&applied) {
            return Err(MigrateError::Newer { version });
        }
        let (kept, undone) = applied.split_at(applied.len().saturating_sub(count));
        steps()
            .undo(&mut conn, kept.last().copied().unwrap_or(0))
            .await?;
        conn.close().await?;
        let undone = undone.iter().rev();
        Ok(undone.filter_map(|version| known(*version)).collect())
    }

    /// The steps that the schema lacks, first one first.
    pub async fn pending(&self) -> Result<Vec<Migration>, MigrateError> {
        Ok(lacking(&self.applied().await?))
    }

    /// The last step that the schema has; `None` before the first.
    pub async fn schema_version(&self) -> Result<Option<i64>, MigrateError> {
        Ok(self.applied().await?.last().copied())
    }

    /// The versions of the steps that the schema has, in order.
    async fn applied(&self) -> Result<Vec<i64>, MigrateError> {
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
    let steps = steps();
    let ups = steps
        .iter()
        .filter(|step| step.migration_type.is_up_migration());
    ups.map(|step| Migration {
        version: step.version,
        description: step.description.to_string(),
    })
    .collect()
}

fn steps() -> Migrator {
    let mut steps = sqlx::migrate!("../../migrations/postgres");
    // It is held already; and what a newer build added stays.
    steps.set_locking(false).set_ignore_missing(true);
    steps
}

async fn applied(conn: &mut PgConnection) -> Result<Vec<i64>, MigrateError> {
    let noted: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
        .fetch_one(&mut *conn)
        .await?;
    if !noted {
        return Ok(Vec::new());
    }
    let applied = sqlx::query_scalar("select version from _sqlx_migrations order by version")
        .fetch_all(conn)
        .await?;
    Ok(applied)
}

fn known(version: i64) -> Option<Migration> {
    migrations()
        .into_iter()
        .find(|step| step.version == version)
}

fn unknown(applied: &[i64]) -> Option<i64> {
    let mut applied = applied.iter().copied();
    applied.find(|version| known(*version).is_none())
}

fn lacking(applied: &[i64]) -> Vec<Migration> {
    let mut steps = migrations();
    steps.retain(|step| !applied.contains(&step.version));
    steps
}

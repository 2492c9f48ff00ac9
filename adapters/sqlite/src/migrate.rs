//! The schema: which migrations the file has, and moving it on or a step back.
//!
//! A connection is opened for it, so that the writer's stays in step with one schema. Each migration
//! is one transaction together with the note that it was applied.

use hango_ports::store::BoxError;
use sqlx::migrate::Migrator;
use sqlx::{Connection, SqliteConnection};
use thiserror::Error;

use crate::SqliteStore;
use crate::open::writing;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/sqlite");

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
    /// The store was opened beside a process that may be executing.
    #[error("only who holds the database for executing may change its schema")]
    NotHeld,
    /// A newer build made this schema.
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
    /// The database said no.
    #[error("the schema could not be read or changed")]
    Failed(#[source] BoxError),
}

impl From<sqlx::migrate::MigrateError> for MigrateError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        use sqlx::migrate::MigrateError as E;
        match error {
            E::VersionMissing(version) => Self::Newer { version },
            E::VersionMismatch(version) => Self::Changed { version },
            other => Self::Failed(other.into()),
        }
    }
}

impl From<sqlx::Error> for MigrateError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl SqliteStore {
    /// Brings the schema to what this build needs; returns the steps that this took.
    pub async fn migrate(&self) -> Result<Vec<Migration>, MigrateError> {
        let pending = self.pending().await?;
        let mut conn = self.migrating().await?;
        MIGRATIONS.run(&mut conn).await?;
        conn.close().await?;
        Ok(pending)
    }

    /// Takes the last `steps` steps back, with all that they hold; returns them, last first.
    pub async fn migrate_down(&self, steps: usize) -> Result<Vec<Migration>, MigrateError> {
        let applied = self.applied().await?;
        let (kept, undone) = applied.split_at(applied.len().saturating_sub(steps));
        let mut conn = self.migrating().await?;
        MIGRATIONS
            .undo(&mut conn, kept.last().copied().unwrap_or(0))
            .await?;
        conn.close().await?;
        let undone = undone.iter().rev();
        Ok(undone.filter_map(|version| known(*version)).collect())
    }

    /// The steps that the schema lacks, first one first.
    pub async fn pending(&self) -> Result<Vec<Migration>, MigrateError> {
        let applied = self.applied().await?;
        let steps = ups().filter(|step| !applied.contains(&step.version));
        Ok(steps.collect())
    }

    /// The last step that the schema has; `None` before the first.
    pub async fn schema_version(&self) -> Result<Option<i64>, MigrateError> {
        Ok(self.applied().await?.last().copied())
    }

    /// The versions of the steps that the schema has. Fails where one is not known.
    async fn applied(&self) -> Result<Vec<i64>, MigrateError> {
        let noted: Option<String> =
            sqlx::query_scalar("select name from sqlite_schema where name = '_sqlx_migrations'")
                .fetch_optional(&self.readers)
                .await?;
        if noted.is_none() {
            return Ok(Vec::new());
        }
        let applied: Vec<i64> =
            sqlx::query_scalar("select version from _sqlx_migrations order by version")
                .fetch_all(&self.readers)
                .await?;
        match applied.iter().find(|version| known(**version).is_none()) {
            Some(version) => Err(MigrateError::Newer { version: *version }),
            None => Ok(applied),
        }
    }

    async fn migrating(&self) -> Result<SqliteConnection, MigrateError> {
        if !self.execute {
            return Err(MigrateError::NotHeld);
        }
        // Dropping a table would delete what refers to it row by row; what does goes before it anyway.
        let options = writing(&self.path, self.patience).foreign_keys(false);
        Ok(SqliteConnection::connect_with(&options).await?)
    }
}

/// Every step that this build knows, first one first: what a new database gets.
#[must_use]
pub fn migrations() -> Vec<Migration> {
    ups().collect()
}

fn ups() -> impl Iterator<Item = Migration> {
    let ups = MIGRATIONS
        .iter()
        .filter(|step| step.migration_type.is_up_migration());
    ups.map(|step| Migration {
        version: step.version,
        description: step.description.to_string(),
    })
}

fn known(version: i64) -> Option<Migration> {
    ups().find(|step| step.version == version)
}

//! Rows, as the domain knows them: the one place where columns are decoded.
//!
//! A column that holds something else than it should is an error that names it, with its row.

mod around;
mod identities;
mod messages;
mod runs;
mod sessions;
mod usage;

use std::sync::Arc;

use hango_domain::Timestamp;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};
use uuid::Uuid;

use crate::error::Error;

pub(crate) use around::{census, situation};
pub(crate) use identities::{api_key, tenant, user};
pub(crate) use messages::{event, message, tool_call};
pub(crate) use runs::{
    ReadRun, agent_snapshot, lease, position, run, run_columns, run_id, session_line, standing,
};
pub(crate) use sessions::{agent, audit_row, first_answer, session};
pub(crate) use usage::usage_sum;

/// The columns of one row of `table`.
pub(crate) struct Columns<'r> {
    row: &'r SqliteRow,
    table: &'static str,
    /// The column that names the row.
    key: &'static str,
}

impl<'r> Columns<'r> {
    pub(crate) const fn new(row: &'r SqliteRow, table: &'static str, key: &'static str) -> Self {
        Self { row, table, key }
    }

    /// A column of a type that SQLite knows.
    fn get<T>(&self, column: &'static str) -> Result<T, Error>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.row
            .try_get(column)
            .map_err(|error| self.unreadable(column, error))
    }

    pub(crate) fn id<T: From<Uuid>>(&self, column: &'static str) -> Result<T, Error> {
        let text: &str = self.get(column)?;
        self.parsed(column, text.parse::<Uuid>().map(T::from))
    }

    fn maybe_id<T: From<Uuid>>(&self, column: &'static str) -> Result<Option<T>, Error> {
        let text: Option<&str> = self.get(column)?;
        let id = text.map(|text| text.parse::<Uuid>().map(T::from));
        self.parsed(column, id.transpose())
    }

    fn time(&self, column: &'static str) -> Result<Timestamp, Error> {
        self.get(column).map(Timestamp::from_micros)
    }

    fn maybe_time(&self, column: &'static str) -> Result<Option<Timestamp>, Error> {
        let micros: Option<i64> = self.get(column)?;
        Ok(micros.map(Timestamp::from_micros))
    }

    /// A number of a type that holds less than SQLite's.
    pub(crate) fn number<T>(&self, column: &'static str) -> Result<T, Error>
    where
        T: TryFrom<i64>,
        T::Error: std::error::Error + Send + Sync + 'static,
    {
        let number: i64 = self.get(column)?;
        self.parsed(column, T::try_from(number))
    }

    /// A word of an enum whose variants have no data.
    fn word<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, Error> {
        let text: &str = self.get(column)?;
        self.parsed(column, word(text))
    }

    fn maybe_word<T: DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>, Error> {
        let text: Option<&str> = self.get(column)?;
        self.parsed(column, text.map(word).transpose())
    }

    fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, Error> {
        let text: &str = self.get(column)?;
        self.parsed(column, serde_json::from_str(text))
    }

    fn maybe_json<T: DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>, Error> {
        let text: Option<&str> = self.get(column)?;
        self.parsed(column, text.map(serde_json::from_str).transpose())
    }

    /// Text in a form that its type parses.
    pub(crate) fn form<T>(&self, column: &'static str) -> Result<T, Error>
    where
        T: std::str::FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let text: &str = self.get(column)?;
        self.parsed(column, text.parse())
    }

    fn maybe_form<T>(&self, column: &'static str) -> Result<Option<T>, Error>
    where
        T: std::str::FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let text: Option<&str> = self.get(column)?;
        self.parsed(column, text.map(str::parse).transpose())
    }

    fn parsed<T, E>(&self, column: &'static str, parsed: Result<T, E>) -> Result<T, Error>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        parsed.map_err(|error| self.unreadable(column, sqlx::Error::Decode(error.into())))
    }

    fn unreadable(&self, column: &'static str, source: sqlx::Error) -> Error {
        let row = self.row.try_get::<String, _>(self.key);
        Error::Unreadable {
            table: self.table,
            column,
            row: row.unwrap_or_else(|_| "an unreadable id".to_owned()),
            source: Arc::new(source),
        }
    }
}

fn word<T: DeserializeOwned>(text: &str) -> Result<T, WordError> {
    let text: StrDeserializer<'_, WordError> = text.into_deserializer();
    T::deserialize(text)
}

/// Each row, decoded.
pub(crate) fn all<T>(
    rows: &[SqliteRow],
    decode: impl Fn(&SqliteRow) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    rows.iter().map(decode).collect()
}

/// A count as SQLite keeps it.
pub(crate) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

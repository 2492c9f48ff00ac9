//! Rows, as the domain knows them: the one place where columns are decoded.
//!
//! A column that holds something else than it should is an error that names it, with its row.

mod around;
mod identities;
mod messages;
mod runs;
mod sessions;
mod usage;

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use hango_domain::Timestamp;
use serde::Serialize;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgRow, PgTypeInfo, PgValueFormat, PgValueRef};
use sqlx::types::Json;
use sqlx::{Decode, Encode, Postgres, Row, Type, ValueRef};
use uuid::Uuid;

use crate::error::Error;

pub(crate) use around::{around, census};
pub(crate) use identities::{api_key, credential, tenant, user};
pub(crate) use messages::{message, tool_call};
pub(crate) use runs::{
    ReadRun, Told, Truth, agent_snapshot, events, lease, now, place, position, renewed, run,
    run_columns, run_id, run_of, session_of, standing, truth,
};
pub(crate) use sessions::{agent, audit_row, first_answer, session, session_line};
pub(crate) use usage::usage_sum;

/// The columns of one row of `table`.
pub(crate) struct Columns<'r> {
    row: &'r PgRow,
    table: &'static str,
    /// The column that names the row.
    key: &'static str,
    /// What its columns' names begin with, where a row is joined of several tables'.
    prefix: &'static str,
}

impl<'r> Columns<'r> {
    pub(crate) const fn new(row: &'r PgRow, table: &'static str, key: &'static str) -> Self {
        Self {
            row,
            table,
            key,
            prefix: "",
        }
    }

    /// The same where every column's name begins with `prefix`.
    pub(crate) const fn prefixed(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

    /// A column of a type that PostgreSQL knows.
    pub(crate) fn get<T>(&self, column: &'static str) -> Result<T, Error>
    where
        T: Decode<'r, Postgres> + Type<Postgres>,
    {
        self.row
            .try_get(self.named(column).as_ref())
            .map_err(|error| self.unreadable(column, error))
    }

    fn named(&self, column: &'static str) -> Cow<'static, str> {
        match self.prefix {
            "" => column.into(),
            prefix => format!("{prefix}{column}").into(),
        }
    }

    pub(crate) fn id<T: From<Uuid>>(&self, column: &'static str) -> Result<T, Error> {
        self.get::<Uuid>(column).map(T::from)
    }

    pub(crate) fn maybe_id<T: From<Uuid>>(&self, column: &'static str) -> Result<Option<T>, Error> {
        Ok(self.get::<Option<Uuid>>(column)?.map(T::from))
    }

    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp, Error> {
        self.get(column).map(timestamp)
    }

    pub(crate) fn maybe_time(&self, column: &'static str) -> Result<Option<Timestamp>, Error> {
        Ok(self.get::<Option<_>>(column)?.map(timestamp))
    }

    /// A number, which the database keeps as an `int`.
    pub(crate) fn number<T>(&self, column: &'static str) -> Result<T, Error>
    where
        T: TryFrom<i32>,
        T::Error: std::error::Error + Send + Sync + 'static,
    {
        let number: i32 = self.get(column)?;
        self.parsed(column, T::try_from(number))
    }

    /// A number, which the database keeps as a `bigint`.
    pub(crate) fn big_number<T>(&self, column: &'static str) -> Result<T, Error>
    where
        T: TryFrom<i64>,
        T::Error: std::error::Error + Send + Sync + 'static,
    {
        let number: i64 = self.get(column)?;
        self.parsed(column, T::try_from(number))
    }

    /// A word of an enum whose variants have no data.
    pub(crate) fn word<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, Error> {
        let text: &str = self.get(column)?;
        self.parsed(column, word(text))
    }

    pub(crate) fn maybe_word<T: DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, Error> {
        let text: Option<&str> = self.get(column)?;
        self.parsed(column, text.map(word).transpose())
    }

    /// A `json` or a `jsonb`.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, Error> {
        let text: JsonText<'_> = self.get(column)?;
        self.parsed(column, serde_json::from_str(text.0))
    }

    pub(crate) fn maybe_json<T: DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, Error> {
        let text: Option<JsonText<'_>> = self.get(column)?;
        let parsed = text.map(|text| serde_json::from_str(text.0));
        self.parsed(column, parsed.transpose())
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

    pub(crate) fn maybe_form<T>(&self, column: &'static str) -> Result<Option<T>, Error>
    where
        T: std::str::FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let text: Option<&str> = self.get(column)?;
        self.parsed(column, text.map(str::parse).transpose())
    }

    pub(crate) fn parsed<T, E>(
        &self,
        column: &'static str,
        parsed: Result<T, E>,
    ) -> Result<T, Error>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        parsed.map_err(|error| self.unreadable(column, sqlx::Error::Decode(error.into())))
    }

    pub(crate) fn unreadable(&self, column: &'static str, source: sqlx::Error) -> Error {
        let row = self.row.try_get::<Uuid, _>(self.named(self.key).as_ref());
        Error::Unreadable {
            table: self.table,
            column,
            row: row.map_or_else(|_| "an unreadable id".to_owned(), |id| id.to_string()),
            source,
        }
    }
}

/// The text of a `json` or a `jsonb`, so that whoever decodes it says what it holds.
struct JsonText<'r>(&'r str);

impl Type<Postgres> for JsonText<'_> {
    fn type_info() -> PgTypeInfo {
        <Json<()> as Type<Postgres>>::type_info()
    }

    fn compatible(ty: &PgTypeInfo) -> bool {
        <Json<()> as Type<Postgres>>::compatible(ty)
    }
}

impl<'r> Decode<'r, Postgres> for JsonText<'r> {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let binary = value.format() == PgValueFormat::Binary;
        let jsonb = binary && value.type_info().as_ref() == &<Self as Type<Postgres>>::type_info();
        let bytes = value.as_bytes()?;
        // The binary form of a `jsonb` is the text behind the number of its format.
        let text = match bytes {
            [1, text @ ..] if jsonb => text,
            [format, ..] if jsonb => return Err(format!("unknown jsonb format {format}").into()),
            text => text,
        };
        Ok(Self(std::str::from_utf8(text)?))
    }
}

/// Bound as `json`: the text of it comes back as it is. (The driver's own wrapper binds `jsonb`.)
pub(crate) struct Document<T>(pub(crate) T);

impl<T> Type<Postgres> for Document<T> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(JSON)
    }
}

impl<T: Serialize> Encode<'_, Postgres> for Document<T> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        serde_json::to_writer(&mut **buffer, &self.0)?;
        Ok(IsNull::No)
    }
}

/// The number that `json` has in every database.
const JSON: Oid = Oid(114);

fn word<T: DeserializeOwned>(text: &str) -> Result<T, WordError> {
    let text: StrDeserializer<'_, WordError> = text.into_deserializer();
    T::deserialize(text)
}

/// Each row, decoded.
pub(crate) fn all<T>(
    rows: &[PgRow],
    decode: impl Fn(&PgRow) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    rows.iter().map(decode).collect()
}

/// What belongs to something that the caller sees, each row decoded: `None` where no row says that he
/// sees it, and nothing where the only one has no `key`.
pub(crate) fn under<T>(
    rows: &[PgRow],
    key: &'static str,
    decode: impl Fn(&PgRow) -> Result<T, Error>,
) -> Result<Option<Vec<T>>, Error> {
    match rows {
        [] => Ok(None),
        [one] if one.try_get_raw(key)?.is_null() => Ok(Some(Vec::new())),
        rows => all(rows, decode).map(Some),
    }
}

/// A count as a `bigint`.
pub(crate) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count as an `int`.
pub(crate) fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The last microsecond of the year 9999, which every client can show.
const LAST: i64 = 253_402_300_799_999_999;

/// A moment as a `timestamptz`; what lies outside of the years 1970 to 9999 is moved to their end.
pub(crate) fn moment(at: Timestamp) -> DateTime<Utc> {
    let micros = at.as_micros().clamp(0, LAST);
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

/// A `timestamptz` as a moment.
pub(crate) fn timestamp(at: DateTime<Utc>) -> Timestamp {
    Timestamp::from_micros(at.timestamp_micros())
}

//! A statement with its parameters, to be executed when there is a connection.

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::{Query, QueryScalar};

/// Of which rows come.
pub(crate) type Statement = Query<'static, Postgres, PgArguments>;

/// Of which one value comes.
pub(crate) type Scalar<T> = QueryScalar<'static, Postgres, T, PgArguments>;

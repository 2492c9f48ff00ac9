//! What is in a piece of PostgreSQL's log.

use sqlx::{PgConnection, Row};

/// A piece of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wal {
    /// All of it, the log's own headers included.
    pub(crate) bytes: u64,
    /// Images of whole pages, which the first change of a page after a checkpoint writes.
    pub(crate) images: u64,
    /// The records, by who wrote them: how many, and their bytes without images.
    pub(crate) by: Vec<(String, i64, i64)>,
}

/// What lies between two places.
pub(super) async fn between(conn: &mut PgConnection, from: i64, to: i64) -> anyhow::Result<Wal> {
    let bytes = u64::try_from(to - from)?;
    // Only what has reached the disk can be read: a commit of our own brings it there.
    let _ = sqlx::query("select pg_current_xact_id()")
        .execute(&mut *conn)
        .await;
    let rows = sqlx::query(
        "select \"resource_manager/record_type\" as writer, count, record_size::bigint as size, \
             fpi_size::bigint as images
         from pg_get_wal_stats('0/0'::pg_lsn + $1::numeric, '0/0'::pg_lsn + $2::numeric, true)
         where count > 0 order by record_size desc",
    );
    let rows = rows.bind(from).bind(to).fetch_all(&mut *conn).await;
    let mut wal = Wal {
        bytes,
        ..Wal::default()
    };
    // Without the extension there is nothing to tell.
    for row in rows.unwrap_or_default() {
        wal.images += u64::try_from(row.try_get::<i64, _>("images")?)?;
        wal.by.push((
            row.try_get("writer")?,
            row.try_get("count")?,
            row.try_get("size")?,
        ));
    }
    Ok(wal)
}

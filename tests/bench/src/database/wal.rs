//! What is in a piece of PostgreSQL's log.

use std::collections::BTreeMap;

use sqlx::{PgConnection, Row};

/// A piece of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wal {
    /// All of it, the log's own headers included.
    pub(crate) bytes: u64,
    /// Images of whole pages, which the first change of a page after a checkpoint writes.
    pub(crate) images: u64,
    /// The records, by their kind and what they are about; the most bytes first.
    pub(crate) records: Vec<Records>,
}

/// Records of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    /// What was done.
    pub(crate) kind: String,
    /// To which table or index, by the number of its file.
    pub(crate) file: Option<i64>,
    /// How often.
    pub(crate) count: i64,
    /// Their bytes, without images.
    pub(crate) bytes: i64,
}

impl Wal {
    /// The bytes of records about the database's own tables.
    pub(crate) fn of_catalogs(&self, files: &BTreeMap<i64, String>) -> u64 {
        let file = |records: &&Records| files.get(&records.file?);
        let records = self.records.iter();
        let catalogs = records.filter(|it| file(it).is_some_and(|name| name.starts_with("pg_")));
        let bytes = catalogs.map(|records| u64::try_from(records.bytes).unwrap_or_default());
        bytes.sum()
    }
}

/// What lies between two places.
pub(super) async fn between(conn: &mut PgConnection, from: i64, to: i64) -> anyhow::Result<Wal> {
    let bytes = u64::try_from(to - from)?;
    // Only what has reached the disk can be read: a commit of our own brings it there.
    let commit = sqlx::query("select pg_current_xact_id()");
    commit.execute(&mut *conn).await?;
    let rows = sqlx::query(
        "select resource_manager || '/' || record_type as kind,
             substring(block_ref from '^blkref #0: rel \\d+/\\d+/(\\d+)')::bigint as file,
             count(*) as count, sum(record_length - fpi_length)::bigint as bytes,
             sum(fpi_length)::bigint as images
         from pg_get_wal_records_info('0/0'::pg_lsn + $1::numeric, '0/0'::pg_lsn + $2::numeric)
         group by 1, 2 order by 4 desc",
    );
    let rows = rows.bind(from).bind(to).fetch_all(&mut *conn).await;
    let mut wal = Wal {
        bytes,
        ..Wal::default()
    };
    // Without the extension there is nothing to tell.
    for row in rows.unwrap_or_default() {
        wal.images += u64::try_from(row.try_get::<i64, _>("images")?)?;
        wal.records.push(Records {
            kind: row.try_get("kind")?,
            file: row.try_get("file")?,
            count: row.try_get("count")?,
            bytes: row.try_get("bytes")?,
        });
    }
    Ok(wal)
}

/// Which table or index a file belongs to, in the database that is connected to.
pub(super) async fn files(conn: &mut PgConnection) -> anyhow::Result<BTreeMap<i64, String>> {
    let rows = sqlx::query(
        "select pg_relation_filenode(oid)::bigint as file, relname::text as name from pg_class
         where relkind in ('r', 'i', 't') and pg_relation_filenode(oid) is not null",
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok((row.try_get("file")?, row.try_get("name")?)))
        .collect()
}

//! A look at everything that is stored: what is damaged, and where something is that must not be.

use anyhow::Context;
use sqlx::{AssertSqlSafe, Connection, PgPool, SqliteConnection};

use crate::store::{Facts, open};

/// The indexes of a server's database: whether each has what its table has, in order. One that does not fails
/// the statement.
const INDEXES: &str = "with indexes as materialized ( \
         select i.indexrelid as id from pg_index i \
         join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam \
         where a.amname = 'btree' and i.indisready and i.indisvalid and c.relpersistence = 'p') \
     select count(bt_index_check(id, true)::text) from indexes";

/// Its tables, and what they keep aside: what is damaged in each.
const TABLES: &str = "with tables as materialized ( \
         select oid, relname from pg_class where relkind in ('r', 't') and relpersistence = 'p') \
     select relname || ': ' || damage.msg \
     from tables, lateral verify_heapam(oid, check_toast => true) as damage";

impl Facts {
    /// What is damaged.
    pub(crate) async fn damage(&self) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Sqlite(path) => {
                let mut file = open(path).await?;
                let check = "select integrity_check from pragma_integrity_check \
                             where integrity_check <> 'ok'";
                let damage = sqlx::query_scalar(check).fetch_all(&mut file).await?;
                file.close().await?;
                Ok(damage)
            }
            Self::Postgres(server) => of_server(server).await,
        }
    }

    /// The tables of which a row holds that text.
    pub(crate) async fn tables_with(&self, text: &str) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Sqlite(path) => {
                let mut file = open(path).await?;
                let tables = tables_of_file_with(&mut file, text).await?;
                file.close().await?;
                Ok(tables)
            }
            Self::Postgres(server) => Ok(tables_of_server_with(server, text).await?),
        }
    }
}

/// By the extension that comes with PostgreSQL. Where a system has left it out, every row is read; the
/// history's checker compares what that reads with what was promised.
async fn of_server(server: &PgPool) -> anyhow::Result<Vec<String>> {
    let known = "select count(*) from pg_available_extensions where name = 'amcheck'";
    let known: i64 = sqlx::query_scalar(known).fetch_one(server).await?;
    let found = if known == 1 {
        sqlx::query("create extension if not exists amcheck")
            .execute(server)
            .await?;
        let indexes = sqlx::query_scalar::<_, i64>(INDEXES)
            .fetch_one(server)
            .await;
        match indexes {
            Ok(_) => sqlx::query_scalar(TABLES).fetch_all(server).await,
            Err(error) => Err(error),
        }
    } else {
        tables_of_server_with(server, "").await.map(|_| Vec::new())
    };
    match found {
        // What cannot be read is damaged.
        Err(sqlx::Error::Database(error)) => Ok(vec![error.to_string()]),
        found => Ok(found?),
    }
}

async fn tables_of_server_with(server: &PgPool, text: &str) -> Result<Vec<String>, sqlx::Error> {
    let tables = "select quote_ident(relname) from pg_class \
                  where relkind = 'r' and relnamespace = 'public'::regnamespace";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(server).await?;
    let mut found = Vec::new();
    for table in tables {
        let rows = format!("select count(*) from {table} t where strpos(t::text, $1) > 0");
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(rows))
            .bind(text)
            .fetch_one(server)
            .await?;
        if rows > 0 {
            found.push(table);
        }
    }
    Ok(found)
}

async fn tables_of_file_with(
    file: &mut SqliteConnection,
    text: &str,
) -> anyhow::Result<Vec<String>> {
    let tables = "select name from sqlite_master where type = 'table' order by name";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *file).await?;
    let mut found = Vec::new();
    for table in tables {
        let holds = "select group_concat('instr(coalesce(\"' || name || '\", ''''), ?1) > 0', ' or ') \
                     from pragma_table_info(?1)";
        let holds: Option<String> = sqlx::query_scalar(holds)
            .bind(&table)
            .fetch_one(&mut *file)
            .await?;
        let holds = holds.with_context(|| format!("{table} has no columns"))?;
        let rows = format!("select count(*) from \"{table}\" where {holds}");
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(rows))
            .bind(text)
            .fetch_one(&mut *file)
            .await?;
        if rows > 0 {
            found.push(table);
        }
    }
    Ok(found)
}

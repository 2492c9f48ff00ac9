//! A look at everything that is stored: where something is that must not be.

use anyhow::Context;
use sqlx::{AssertSqlSafe, Connection, PgPool, SqliteConnection};

use crate::store::{Facts, open};

impl Facts {
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

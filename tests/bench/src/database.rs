//! A private PostgreSQL that writes to a disk as one in production does, and what it tells of itself.
//!
//! The questions are asked in a database of their own, so that they are not counted with hango's.

mod wal;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::try_join_all;
use hango_test_database::{Cluster, Settings};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::figures::{float, share};
use crate::machine::{self, Ticks};
pub(crate) use wal::Wal;

/// How long it takes at most until a session that is idle has told its counters.
const TOLD: Duration = Duration::from_millis(10_500);

/// The server.
pub(crate) struct Database {
    cluster: Cluster,
    observer: PgConnection,
    postmaster: u32,
    /// The database of the moment.
    name: String,
    made: u32,
}

/// What had happened up to a moment, in the database of the moment or in all of the server, where
/// nobody else is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    /// Transactions that ended well; only after [`Database::settle`] all of them.
    pub(crate) commits: i64,
    /// Transactions that had something to write.
    pub(crate) writers: i64,
    /// Where the log of changes ends, in bytes.
    pub(crate) wal: i64,
    /// What it used of the processors.
    pub(crate) cpu: Ticks,
}

/// How a table's rows were updated.
#[derive(Clone, Debug)]
pub(crate) struct Updates {
    pub(crate) table: String,
    pub(crate) updated: i64,
    pub(crate) heap_only: i64,
}

impl Updates {
    /// How many of a hundred were heap-only.
    pub(crate) fn percent(&self) -> f64 {
        100.0 * share(float(self.heap_only), float(self.updated))
    }
}

/// What a statement cost.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    pub(crate) statement: String,
    pub(crate) calls: i64,
    pub(crate) wal_bytes: i64,
    pub(crate) micros: f64,
}

impl Database {
    /// Starts it.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let settings = |preloaded: bool| {
            let on = ["synchronous_commit", "full_page_writes"];
            let mut extra: Vec<_> = on.map(|name| (name.to_owned(), "on".to_owned())).into();
            extra.push(("shared_buffers".to_owned(), "256MB".to_owned()));
            if preloaded {
                let library = "pg_stat_statements".to_owned();
                extra.push(("shared_preload_libraries".to_owned(), library));
            }
            Settings {
                fsync: true,
                extra,
                ..Settings::default()
            }
        };
        let started = tokio::task::spawn_blocking(move || {
            // Where it is not installed the server does not start with it.
            Cluster::start(&settings(true)).or_else(|_| Cluster::start(&settings(false)))
        });
        let cluster = started.await??;
        let mut observer = PgConnection::connect(&cluster.url("postgres")).await?;
        let backend = sqlx::query_scalar::<_, i32>("select pg_backend_pid()");
        let backend = backend.fetch_one(&mut observer).await?;
        for extension in ["pg_stat_statements", "pg_walinspect"] {
            let create = format!("create extension {extension}");
            if let Err(error) = cluster.execute("postgres", &create).await {
                println!("(what {extension} tells is left out: {error:#})\n");
            }
        }
        Ok(Self {
            postmaster: machine::parent(u32::try_from(backend)?)?,
            cluster,
            observer,
            name: String::new(),
            made: 0,
        })
    }

    /// Makes another database, which is the one of the moment from now on.
    pub(crate) async fn begin_anew(&mut self) -> anyhow::Result<()> {
        self.made += 1;
        self.name = format!("hango_{}", self.made);
        let create = format!("create database {}", self.name);
        self.cluster.execute("postgres", &create).await
    }

    /// The port of the server.
    pub(crate) fn port(&self) -> u16 {
        self.cluster.port()
    }

    /// The URL of the database of the moment, by way of that port.
    pub(crate) fn url(&self, port: u16) -> String {
        let name = &self.name;
        format!("postgres://hango@127.0.0.1:{port}/{name}?sslmode=disable")
    }

    /// What has happened so far.
    pub(crate) async fn counters(&mut self) -> anyhow::Result<Counters> {
        let row = sqlx::query(
            "select xact_commit as commits,
                 pg_snapshot_xmax(pg_current_snapshot())::text::bigint as writers,
                 pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as wal
             from pg_stat_database where datname = $1",
        );
        let row = row.bind(&self.name).fetch_one(&mut self.observer).await?;
        Ok(Counters {
            commits: row.try_get("commits")?,
            writers: row.try_get("writers")?,
            wal: row.try_get("wal")?,
            cpu: self.cpu()?,
        })
    }

    /// What it used of the processors.
    pub(crate) fn cpu(&self) -> anyhow::Result<Ticks> {
        machine::cpu_of_family(self.postmaster)
    }

    /// Waits until every session has told its counters.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(TOLD).await;
    }

    /// After this the first change of each page writes the whole page to the log.
    pub(crate) async fn checkpoint(&mut self) -> anyhow::Result<()> {
        self.observe("checkpoint").await
    }

    /// Begins to count the costs of statements.
    pub(crate) async fn count_statements(&mut self) -> anyhow::Result<()> {
        // It may not be there.
        let _ = self.observe("select pg_stat_statements_reset()").await;
        Ok(())
    }

    /// What statements cost since, the dearest first by what they wrote.
    pub(crate) async fn statements(&mut self) -> anyhow::Result<Vec<Cost>> {
        let rows = sqlx::query(
            "select query, calls, wal_bytes::bigint as wal_bytes, total_exec_time * 1000 as micros
             from pg_stat_statements s join pg_database d on d.oid = s.dbid
             where d.datname = $1 order by wal_bytes desc, micros desc limit 16",
        );
        let rows = rows.bind(&self.name).fetch_all(&mut self.observer).await;
        let costs = rows.unwrap_or_default().into_iter().map(|row| {
            Ok(Cost {
                statement: row.try_get("query")?,
                calls: row.try_get("calls")?,
                wal_bytes: row.try_get("wal_bytes")?,
                micros: row.try_get("micros")?,
            })
        });
        costs.collect()
    }

    /// What lies between two moments in the log.
    pub(crate) async fn wal_between(
        &mut self,
        from: &Counters,
        to: &Counters,
    ) -> anyhow::Result<Wal> {
        wal::between(&mut self.observer, from.wal, to.wal).await
    }

    /// How the rows of each table were updated since its making, and which file is whose. It is asked
    /// in that database, so it adds to its counters.
    pub(crate) async fn tables(&self) -> anyhow::Result<(Vec<Updates>, BTreeMap<i64, String>)> {
        let mut conn = PgConnection::connect(&self.url(self.port())).await?;
        let rows = sqlx::query(
            "select relname::text, n_tup_upd, n_tup_hot_upd from pg_stat_user_tables
             where n_tup_upd > 0 order by n_tup_upd desc",
        );
        let rows = rows.fetch_all(&mut conn).await?.into_iter();
        let updates = rows.map(|row| {
            anyhow::Ok(Updates {
                table: row.try_get("relname")?,
                updated: row.try_get("n_tup_upd")?,
                heap_only: row.try_get("n_tup_hot_upd")?,
            })
        });
        let updates = updates.collect::<Result<_, _>>()?;
        let files = wal::files(&mut conn).await?;
        conn.close().await?;
        Ok((updates, files))
    }

    /// How many of the smallest durable commits it makes in a second, for so many clients: what this
    /// machine can do at this moment.
    pub(crate) async fn commits_per_second(&mut self, clients: usize) -> anyhow::Result<f64> {
        self.observe("create table if not exists probe (n int)")
            .await?;
        let url = self.cluster.url("postgres");
        let connections = (0..clients).map(|_| PgConnection::connect(&url));
        let mut connections = try_join_all(connections).await?;
        let begun = Instant::now();
        let clients = connections.iter_mut().map(|conn| async move {
            let mut commits = 0_u64;
            while begun.elapsed() < Duration::from_secs(2) {
                let insert = sqlx::query("insert into probe values (1)");
                insert.execute(&mut *conn).await?;
                commits += 1;
            }
            anyhow::Ok(commits)
        });
        let commits: u64 = try_join_all(clients).await?.into_iter().sum();
        Ok(share(float(commits), begun.elapsed().as_secs_f64()))
    }

    async fn observe(&mut self, statement: &str) -> anyhow::Result<()> {
        let statement = AssertSqlSafe(statement.to_owned());
        let executed = sqlx::raw_sql(statement).execute(&mut self.observer).await;
        executed.context("the server was asked for its own")?;
        Ok(())
    }
}

//! The database of a scenario: a file that one replica has to itself, or a server of its own, which
//! every replica reaches through a proxy of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use hango_test_database::{Cluster, Settings, Stop};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgConnection};

use crate::proxy::Proxy;
use crate::store::Facts;

/// A kind of database.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
}

impl Kind {
    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => Err("sqlite or postgres".to_owned()),
        }
    }
}

/// Where a database stores.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// That does not matter.
    Anywhere,
    /// All that it has, in that directory.
    All(PathBuf),
    /// What is in its tables, in that directory; a server keeps its log elsewhere.
    Tables(PathBuf),
}

impl Place {
    /// The directory, if there is one, else `other`.
    pub(crate) fn or<'a>(&'a self, other: &'a Path) -> &'a Path {
        match self {
            Self::Anywhere => other,
            Self::All(dir) | Self::Tables(dir) => dir,
        }
    }
}

/// A database; clones are the same one.
#[derive(Clone)]
pub(crate) struct Database {
    /// What is in it.
    pub(crate) facts: Facts,
    /// What to tell each replica of it.
    pub(crate) urls: Vec<String>,
    server: Option<Arc<Server>>,
}

struct Server {
    cluster: Cluster,
    proxies: Vec<Proxy>,
}

impl Database {
    /// A file in that directory, not made yet.
    pub(crate) fn file(dir: &Path) -> Self {
        let path = dir.join("hango.db");
        Self {
            urls: vec![format!("sqlite://{}", path.display())],
            facts: Facts::Sqlite(path),
            server: None,
        }
    }

    /// A server with so many proxies before it.
    pub(crate) async fn server(
        settings: Settings,
        proxies: usize,
        place: &Place,
    ) -> anyhow::Result<Self> {
        let cluster = tokio::task::spawn_blocking(move || Cluster::start(&settings)).await??;
        let mut create = "create database faults".to_owned();
        match place {
            Place::Anywhere => {}
            Place::All(dir) => relocate(&cluster, dir).await?,
            Place::Tables(dir) => {
                let place = format!("create tablespace place location '{}'", dir.display());
                cluster.execute("postgres", &place).await?;
                create += " tablespace place";
            }
        }
        cluster.execute("postgres", &create).await?;
        let facts = PgPoolOptions::new()
            .max_connections(4)
            .connect_lazy(&cluster.url("faults"))?;
        let port = cluster.port();
        let proxies = (0..proxies).map(|_| Proxy::start(port));
        let proxies: Vec<_> = futures::future::try_join_all(proxies).await?;
        let direct = format!(":{port}/");
        let through = |proxy: &Proxy| {
            let url = cluster.url("faults");
            url.replace(&direct, &format!(":{}/", proxy.port))
        };
        Ok(Self {
            facts: Facts::Postgres(facts),
            urls: proxies.iter().map(through).collect(),
            server: Some(Arc::new(Server { cluster, proxies })),
        })
    }

    fn server_of(&self) -> anyhow::Result<Arc<Server>> {
        let server = self.server.as_ref().context("a file has no server")?;
        Ok(Arc::clone(server))
    }

    /// The proxy of a replica.
    pub(crate) fn with_proxy<T>(
        &self,
        place: usize,
        work: impl FnOnce(&Proxy) -> T,
    ) -> anyhow::Result<T> {
        let server = self.server_of()?;
        let proxy = server
            .proxies
            .get(place)
            .context("there is no such proxy")?;
        Ok(work(proxy))
    }

    /// Stops the server as a crash does.
    pub(crate) async fn crash(&self) -> anyhow::Result<()> {
        let server = self.server_of()?;
        tokio::task::spawn_blocking(move || server.cluster.stop(Stop::Immediate)).await?
    }

    /// Starts it again, and waits until it accepts connections.
    pub(crate) async fn resume(&self) -> anyhow::Result<()> {
        let server = self.server_of()?;
        tokio::task::spawn_blocking(move || server.cluster.resume()).await?
    }

    /// Starts it again where it has ended, and waits until it accepts connections.
    pub(crate) async fn revive(&self) -> anyhow::Result<()> {
        const WITHIN: Duration = Duration::from_mins(1);
        let begun = Instant::now();
        while let Err(error) = self.execute("select 1").await {
            if begun.elapsed() > WITHIN {
                return Err(error.context("the database does not come back"));
            }
            // It is refused where the server has not ended, but recovers.
            if self.resume().await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(())
    }

    /// Whether the server's log ends with lines of which one says that.
    pub(crate) fn says(&self, what: &str) -> anyhow::Result<bool> {
        Ok(self.server_of()?.cluster.log().contains(what))
    }

    /// Executes statements in it, as somebody who may do everything.
    pub(crate) async fn execute(&self, statements: &str) -> anyhow::Result<()> {
        self.server_of()?
            .cluster
            .execute("faults", statements)
            .await
    }
}

/// Moves everything that a server stores to another directory.
async fn relocate(cluster: &Cluster, dir: &Path) -> anyhow::Result<()> {
    let mut server = PgConnection::connect(&cluster.url("postgres")).await?;
    let here: String = sqlx::query_scalar("show data_directory")
        .fetch_one(&mut server)
        .await?;
    server.close().await?;
    cluster.stop(Stop::Fast)?;
    let there = dir.join("cluster");
    // Onto another disk, with its owner.
    let moved = Command::new("mv").arg(&here).arg(&there).status()?;
    anyhow::ensure!(moved.success(), "{here} could not be moved");
    std::os::unix::fs::symlink(&there, &here)?;
    cluster.resume()
}

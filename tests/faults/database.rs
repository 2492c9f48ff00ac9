//! The database of a scenario: a file that one replica has to itself, or a server of its own, which
//! every replica reaches through a proxy of its own.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context;
use hango_test_database::{Cluster, Settings, Stop};
use sqlx::postgres::PgPoolOptions;

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

    /// A server with so many proxies before it; what is stored is in `data`, if that is given.
    pub(crate) async fn server(
        settings: Settings,
        proxies: usize,
        data: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let cluster = tokio::task::spawn_blocking(move || Cluster::start(&settings)).await??;
        let mut create = "create database faults".to_owned();
        if let Some(data) = data {
            let place = format!("create tablespace place location '{}'", data.display());
            cluster.execute("postgres", &place).await?;
            create += " tablespace place";
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

    /// Executes statements in it, as somebody who may do everything.
    pub(crate) async fn execute(&self, statements: &str) -> anyhow::Result<()> {
        self.server_of()?
            .cluster
            .execute("faults", statements)
            .await
    }
}

//! The server that all tests of this process share.

use anyhow::Context;
use tokio::sync::OnceCell;

use crate::cluster::{Cluster, Settings};
use crate::container::Container;
use crate::programs::setting;

/// Where it is from.
pub(crate) enum Server {
    /// Somebody named it.
    Given(String),
    /// It is in a container.
    Container(Box<Container>),
    /// It is of the machine's own programs.
    Cluster(Cluster),
}

/// Never dropped: guardians tidy up when the process ends.
static SHARED: OnceCell<Server> = OnceCell::const_new();

impl Server {
    /// The server, which the first caller starts.
    pub(crate) async fn shared() -> anyhow::Result<&'static Self> {
        SHARED.get_or_try_init(Self::start).await
    }

    async fn start() -> anyhow::Result<Self> {
        if let Some(url) = setting("HANGO_TEST_DATABASE_URL") {
            return Ok(Self::Given(url));
        }
        // Both block for a moment, or keep what they start to the runtime that they are started in, and
        // that of the first test ends with it.
        let started = tokio::task::spawn_blocking(|| {
            if Container::can_be_had() {
                let runtime = Box::leak(Box::new(tokio::runtime::Runtime::new()?));
                let container = runtime.block_on(Container::start());
                let container = container.context("a container could not be started")?;
                return Ok(Self::Container(Box::new(container)));
            }
            let cluster = Cluster::start(&Settings::default());
            Ok(Self::Cluster(cluster?))
        });
        started.await?
    }

    /// The URL of a database that is there, as somebody who may make others.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Given(url) => url.clone(),
            Self::Container(container) => container.url.clone(),
            Self::Cluster(cluster) => cluster.url("postgres"),
        }
    }

    /// The URL of another database of it, as the same person.
    pub(crate) fn url_of(&self, database: &str) -> anyhow::Result<String> {
        with_database(&self.url(), database)
    }

    /// The end of what it logged, where that can be read.
    pub(crate) fn log(&self) -> String {
        match self {
            Self::Cluster(cluster) => cluster.log(),
            Self::Given(_) | Self::Container(_) => String::new(),
        }
    }
}

/// `url` with another database.
fn with_database(url: &str, database: &str) -> anyhow::Result<String> {
    let (url, query) = match url.split_once('?') {
        Some((url, query)) => (url, format!("?{query}")),
        None => (url, String::new()),
    };
    let (scheme, rest) = url
        .split_once("://")
        .with_context(|| format!("{url} is not a URL"))?;
    let server = rest.split('/').next().unwrap_or(rest);
    Ok(format!("{scheme}://{server}/{database}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_the_same_server_is_named() {
        for (url, expected) in [
            ("postgres://u:p@h:1/a", "postgres://u:p@h:1/b"),
            ("postgres://u@h", "postgres://u@h/b"),
            ("postgres://u@h/", "postgres://u@h/b"),
            (
                "postgresql://h/a?sslmode=disable",
                "postgresql://h/b?sslmode=disable",
            ),
        ] {
            assert_eq!(with_database(url, "b").expect("it is a URL"), expected);
        }
    }
}

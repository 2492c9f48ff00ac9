//! A database for one test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::cluster::execute;
use crate::server::Server;

static NEXT: AtomicU32 = AtomicU32::new(1);

/// An empty database, which is dropped with this. If the test fails, the end of the server's log is
/// printed, where it can be read.
pub struct TestDatabase {
    name: String,
    url: String,
    server: &'static Server,
}

impl TestDatabase {
    /// Makes one.
    ///
    /// # Panics
    ///
    /// When there is no server to make it on: the message says what to install.
    pub async fn new() -> Self {
        match Self::make().await {
            Ok(database) => database,
            Err(error) => panic!("there is no database to test with: {error:#}"),
        }
    }

    async fn make() -> anyhow::Result<Self> {
        let server = Server::shared().await?;
        let name = name();
        execute(&server.url(), &format!("create database {name}")).await?;
        Ok(Self {
            url: server.url_of(&name)?,
            name,
            server,
        })
    }

    /// Its name on the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its URL, as somebody who may do everything in it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Executes statements in it.
    pub async fn execute(&self, statements: &str) -> anyhow::Result<()> {
        execute(&self.url, statements).await
    }

    fn drop_now(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // Whoever is still connected is not any more.
        let statement = format!("drop database {} with (force)", self.name);
        runtime.block_on(execute(&self.server.url(), &statement))
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the end of the server's log:{}", self.server.log());
        }
        // In a thread, because the one of a test must not wait in its runtime.
        std::thread::scope(|scope| {
            let dropped = scope.spawn(|| self.drop_now()).join();
            if let Ok(Err(error)) = dropped {
                eprintln!("{} was not dropped: {error:#}", self.name);
            }
        });
    }
}

/// A name that no other test has, of this process or another one on the same server.
fn name() -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    format!("hango_test_{process}_{}_{number}", started())
}

/// Something that differs between processes of the same number on several machines.
#[expect(
    clippy::disallowed_methods,
    reason = "a name has to be new, it does not matter how"
)]
fn started() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.subsec_nanos())
}

//! The connection that is kept for renewals, sweeps and cancels.
//!
//! It is a pool of one, whose work runs on a thread of its own: neither a pool that others exhaust nor
//! a runtime that a tool blocks can keep it from renewing leases. Its jobs run one at a time, in the
//! order in which they came; the connection is opened when it is needed and again after it failed. It
//! goes past a pooler: that one's connections can be exhausted as well.

use std::io;

use futures::future::BoxFuture;
use sqlx::PgConnection;
use tokio::runtime::{self, Runtime};

use crate::error::Error;
use crate::pool::{Limits, Pool};

/// The kept connection, with the thread that its work runs on.
pub(crate) struct Lane {
    pool: Pool,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Lane {
    /// A lane that connects when it has something to do.
    pub(crate) fn new(mut limits: Limits) -> io::Result<Self> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("hango-postgres-lane")
            .enable_all()
            .build()?;
        limits.connections = 1;
        Ok(Self {
            pool: Pool::new(limits, runtime.handle().clone()),
            runtime: Some(runtime),
        })
    }

    /// As [`Pool::run`].
    pub(crate) async fn run<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + std::error::Error + Send + Sync + 'static,
    {
        self.pool.run(work).await
    }

    /// As [`Pool::transact`].
    pub(crate) async fn transact<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + std::error::Error + Send + Sync + 'static,
    {
        self.pool.transact(work).await
    }

    /// Lets the work that has begun end, and refuses more.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A store may be dropped where nothing may wait.
            runtime.shutdown_background();
        }
    }
}

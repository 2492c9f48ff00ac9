//! Whether the database answers.

use async_trait::async_trait;
use hango_ports::StoreFailure;
use hango_ports::store::{Connections, StoreHealth};

use crate::PostgresStore;
use crate::error::Error;

#[async_trait]
impl StoreHealth for PostgresStore {
    /// A standby, or a database that was set to be read only, answers and is of no use.
    async fn check(&self) -> Result<(), StoreFailure> {
        self.pool
            .read(|conn| {
                let query = sqlx::query_scalar(
                    "select current_setting('transaction_read_only')::boolean
                     from (select count(*) from (select id from tenants limit 1) as one) as all_of_it",
                );
                Box::pin(async {
                    let read_only: bool = query.fetch_one(conn).await.map_err(Error::from)?;
                    if read_only {
                        return Err(Error::ReadOnly.into());
                    }
                    Ok(())
                })
            })
            .await
    }

    /// But for the one that renewals have for themselves.
    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }
}

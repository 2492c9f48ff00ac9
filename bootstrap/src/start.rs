//! What has to be true of a store before anything is served or executed.
//!
//! A store that is not there yet is waited for, because the process has nothing else to do, and whoever
//! started it may have started the database beside it. What no waiting helps ends the process.

use std::time::Duration;

use hango_application::use_cases::{UseCaseError, UseCases};
use hango_ports::StoreFailure;

use crate::config::Settings;
use crate::store::{SchemaError, Store};

/// How long to wait before a store that is not there is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Why a store is not prepared.
struct NotPrepared {
    error: anyhow::Error,
    passes: bool,
}

/// Brings the schema up to date, or sees that it is, and makes what has to be there from the start.
pub(crate) async fn prepare(
    store: &Store,
    use_cases: &UseCases,
    settings: &Settings,
) -> anyhow::Result<()> {
    loop {
        match try_to_prepare(store, use_cases, settings).await {
            Ok(()) => return Ok(()),
            Err(NotPrepared {
                error,
                passes: true,
            }) => tracing::warn!(
                error = format!("{error:#}"),
                "the store cannot be used yet; it is tried again"
            ),
            Err(NotPrepared { error, .. }) => return Err(error),
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

async fn try_to_prepare(
    store: &Store,
    use_cases: &UseCases,
    settings: &Settings,
) -> Result<(), NotPrepared> {
    if settings.auto_migrate {
        store
            .migrate()
            .await
            .map_err(|error| error.while_doing("bring the schema up to date"))?;
    } else {
        let pending = store.pending().await;
        let pending = pending.map_err(|error| error.while_doing("read the schema's version"))?;
        if !pending.is_empty() {
            return Err(NotPrepared {
                error: anyhow::anyhow!(
                    "the schema is {} migrations behind and HANGO_AUTO_MIGRATE is false; run `hango migrate`",
                    pending.len()
                ),
                passes: false,
            });
        }
    }
    if let Some(key) = &settings.bootstrap_api_key {
        let made = use_cases.ensure_bootstrap(key.clone()).await;
        made.map_err(|error| NotPrepared {
            passes: matches!(
                error,
                UseCaseError::Failure(StoreFailure::Unavailable(_) | StoreFailure::OutOfSpace(_))
            ),
            error: anyhow::Error::from(error).context("make the bootstrap key"),
        })?;
    }
    Ok(())
}

impl SchemaError {
    fn while_doing(self, what: &'static str) -> NotPrepared {
        NotPrepared {
            passes: self.passes,
            error: anyhow::Error::from(self).context(what),
        }
    }
}

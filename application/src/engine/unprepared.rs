//! Runs that cannot even begin: why, and how they end.

use std::sync::Arc;

use hango_domain::MessageId;
use hango_domain::journal::{self, ToolCall};
use hango_domain::memory::MemoryError;
use hango_domain::middleware::BeforeRunError;
use hango_domain::run::{Change, End, Lease, Outcome, RunError, RunErrorCode, RunStatus, WriteId};
use hango_ports::store::StoreFailure;
use thiserror::Error;

use super::Shared;
use super::account::Account;
use super::options::Abandoned;
use crate::live;

/// Why a run cannot even begin.
#[derive(Debug, Error)]
pub(super) enum NotPrepared {
    #[error(transparent)]
    Unreadable(#[from] StoreFailure),
    #[error("runs.state_json cannot be read")]
    Memory(#[from] MemoryError),
    #[error("no provider is configured under the name {0:?}")]
    NoProvider(String),
    #[error("a layer panicked before the run")]
    Panicked,
}

impl From<BeforeRunError> for NotPrepared {
    fn from(error: BeforeRunError) -> Self {
        match error {
            BeforeRunError::Memory(error) => Self::Memory(error),
        }
    }
}

impl NotPrepared {
    /// What the run's owner is told; details are for the log, where they may be internal.
    pub(super) fn to_run_error(&self) -> RunError {
        match self {
            Self::Unreadable(_) | Self::Memory(_) => RunError::new(
                RunErrorCode::Internal,
                "what is stored of the run cannot be read; the log has the details, by this run's id",
            ),
            Self::NoProvider(_) => RunError::new(RunErrorCode::ProviderRejected, self.to_string()),
            Self::Panicked => defect(),
        }
    }
}

/// What the owner of a run is told that a defect ended.
pub(super) fn defect() -> RunError {
    RunError::new(
        RunErrorCode::Internal,
        "something in hango failed; the log has the details, by this run's id",
    )
}

/// Ends a run that cannot be executed, or not further, and answers the calls that were open when it was
/// claimed. If that cannot be written, the run goes back to the queue when a renewal finds that nobody executes it.
pub(super) async fn end(
    shared: &Shared,
    lease: Lease,
    open: &[ToolCall],
    error: RunError,
    account: Option<&Arc<Account>>,
) -> Result<RunStatus, Abandoned> {
    let ids = &shared.parts.ids;
    let mut end = End::new(lease, WriteId(ids.uuid()), Outcome::Failed(error));
    if !open.is_empty() {
        let closing = journal::close(open, MessageId(ids.uuid()));
        end.results = closing.results;
        end.messages = vec![closing.message];
    }
    let saving = account.map(|account| account.saving(&Change::Finish(end.clone())));
    match shared.parts.runs.finish(end).await {
        Ok(written) => {
            if let Some((account, saving)) = account.zip(saving) {
                account.saved(saving, &written);
            }
            live::tell(&*shared.parts.sink, &written.events);
            Ok(written.status)
        }
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the run could not be ended"
            );
            Err(Abandoned::LeaseLost)
        }
    }
}

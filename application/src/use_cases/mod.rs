//! What callers can do, one method for each.
//!
//! A use case decides in the order of the HTTP contract: what does not exist for the caller, what his
//! role forbids, what is wrong with what he sent, and at last what the store refuses. It asks a store
//! for one atomic change, hands it the audit row that belongs to the change, and gives a hint to
//! whoever waits.

mod admin;
mod admin_token;
mod agents;
mod api_keys;
mod audit;
mod authenticate;
mod caller;
mod catalog;
mod error;
mod explain;
#[cfg(test)]
mod fixtures;
mod input;
mod keys;
mod once;
mod pieces;
mod runs;
mod sessions;
mod tracing;
mod usage;
mod users;

use std::sync::Arc;

use hango_domain::agent::RunLimits;
use hango_ports::{Clock, Ids, Stores, Telemetry};

pub use self::tracing::Tracing;
pub use admin::{BOOTSTRAP_OWNER, BOOTSTRAP_TENANT, NewTenant, NewUser};
pub use admin_token::{AdminToken, UnfitToken};
pub use agents::{AgentDraft, NewAgent};
pub use api_keys::KeyDraft;
pub use audit::Action;
pub use authenticate::Unauthenticated;
pub use caller::{Caller, RequestContext, Traceparent};
pub use catalog::{Catalog, ProviderInfo, ToolInfo};
pub use error::UseCaseError;
pub use input::{Fault, FaultCode, Input};
pub use keys::{KeyName, KeyText, MalformedKey, MintedKey, NamesNoKey, mint_key};
pub use once::Made;
pub use pieces::Piece;
pub use runs::{RunDraft, RunQuery};
pub use sessions::{SessionDraft, SessionQuery};
pub use usage::{UsageAsk, UsageReport};

use crate::live::LiveEvents;
use crate::signals::Signals;
use crate::telemetry::LogLines;
use authenticate::Touches;

/// What an operator set for the API.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ApiSettings {
    /// The most runs of a session that have not ended.
    pub max_queued_runs_per_session: u32,
    /// The most running runs of one tenant; 0 for any number.
    pub running_per_tenant: u32,
    /// What a run may take; agents only tighten it.
    pub limits: RunLimits,
    /// Equal calls at which a run's call is not made any more, for agents that set none of their own.
    pub repeat_call_threshold: u32,
}

/// The use cases of the API, over the ports.
pub struct UseCases {
    stores: Stores,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    signals: Arc<Signals>,
    live: Arc<LiveEvents>,
    catalog: Catalog,
    settings: ApiSettings,
    touches: Touches,
    telemetry: Arc<dyn Telemetry>,
    tracing: Tracing,
}

impl UseCases {
    /// The use cases over these ports.
    #[must_use]
    pub fn new(
        stores: Stores,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        signals: Arc<Signals>,
        live: Arc<LiveEvents>,
        catalog: Catalog,
        settings: ApiSettings,
    ) -> Self {
        Self {
            stores,
            ids,
            clock,
            signals,
            live,
            catalog,
            settings,
            touches: Touches::default(),
            telemetry: Arc::new(LogLines),
            tracing: Tracing::default(),
        }
    }

    /// What agents can be made of.
    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// An id that was never used before, for whatever the edge must tell apart.
    #[must_use]
    pub fn new_id(&self) -> uuid::Uuid {
        self.ids.uuid()
    }
}

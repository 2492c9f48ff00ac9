//! What the application needs from the outside world.
//!
//! One module per port: a trait, its values and its errors, nothing else. Every trait is
//! `Send + Sync`, object safe, and used as `Arc<dyn …>`. Errors are enums that a caller can act on;
//! what only a reader of logs cares about is their source.
//!
//! With the feature `mocks` every trait has a mockall fake, `Mock…`, beside it.

pub mod agent_store;
pub mod audit_store;
pub mod clock;
pub mod event_sink;
pub mod idempotency;
pub mod identity_store;
pub mod ids;
pub mod page;
pub mod provider;
pub mod run_store;
pub mod session_store;
pub mod store;
pub mod telemetry;
pub mod tool;
pub mod usage_store;
pub mod wake_up;

pub use agent_store::AgentStore;
pub use audit_store::AuditStore;
pub use clock::Clock;
pub use event_sink::EventSink;
pub use identity_store::IdentityStore;
pub use ids::Ids;
pub use provider::Provider;
pub use run_store::RunStore;
pub use session_store::SessionStore;
pub use store::{StoreFailure, Stores};
pub use telemetry::Telemetry;
pub use tool::Tool;
pub use usage_store::UsageStore;
pub use wake_up::WakeUp;

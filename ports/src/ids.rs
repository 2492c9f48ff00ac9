//! New identities and randomness.

use hango_domain::{SpanId, TraceId};
use uuid::Uuid;

/// Makes what must be unique or unguessable.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Ids: Send + Sync {
    /// A new UUID of version 7: unique, and within a process never smaller than one made before.
    fn uuid(&self) -> Uuid;

    /// 32 bytes that nobody can guess.
    fn secret(&self) -> [u8; 32];

    /// A new trace id; never all zeros.
    fn trace_id(&self) -> TraceId;

    /// A new span id; never all zeros.
    fn span_id(&self) -> SpanId;
}

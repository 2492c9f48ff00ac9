//! For fuzzing: what the protocol's events mean, without a server.

use hango_provider_http::{Dialect, Origin};

use crate::mapping::Mapping;

/// How the events of one answer of the model `m` are read.
#[must_use]
pub fn dialect() -> impl Dialect {
    Mapping::new(Origin::named("fuzzed"), "m")
}

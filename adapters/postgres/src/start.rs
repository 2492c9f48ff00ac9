//! What keeps a process from starting: whether it may pass, or needs an operator.
//!
//! A database that is not there yet, that starts, fails over or has no room is waited for. One that
//! knows neither the user nor the name it is asked for will not learn them by being asked again.

use crate::error::{code, driver};
use crate::migrate::MigrateError;

/// Classes of SQLSTATEs that come and go: connections, read-only servers, conflicts, resources, locks,
/// shutdowns and cancels, the system.
const PASSING: [&str; 7] = ["08", "25", "40", "53", "55", "57", "58"];

impl MigrateError {
    /// Whether the same may succeed later although nobody does anything about it.
    #[must_use]
    pub fn passes(&self) -> bool {
        match self {
            Self::Newer { .. } | Self::Changed { .. } => false,
            Self::Busy { .. } => true,
            Self::Failed(source) => match driver(&**source) {
                Some(sqlx::Error::Configuration(_)) => false,
                Some(error) => code(error)
                    .is_none_or(|code| PASSING.iter().any(|class| code.starts_with(class))),
                None => true,
            },
        }
    }
}

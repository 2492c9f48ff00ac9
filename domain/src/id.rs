//! Identities. One type for each kind of thing, so that none can stand in for another.
//!
//! All are UUIDs; new ones are made by the `Ids` port (version 7, so they sort by age).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    )*};
}

ids! {
    /// A customer of the platform team; nothing is shared between two of them.
    TenantId;
    /// A person or program that acts within one tenant.
    UserId;
    /// A credential of one user.
    ApiKeyId;
    /// A configured agent.
    AgentId;
    /// A conversation with an agent.
    SessionId;
    /// One execution of an agent in a session.
    RunId;
    /// A message of a session.
    MessageId;
    /// An entry of a run's tool journal.
    ToolCallId;
    /// An entry of the audit trail.
    AuditId;
    /// One process, for as long as it lives. Made anew at every start.
    OwnerId;
}

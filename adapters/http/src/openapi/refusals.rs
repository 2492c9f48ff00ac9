//! What only some operations refuse, by their ids. What all of a kind refuse is added by rule.

use crate::problem::Code::{
    self, AgentArchived, BodyTooLarge, EmailTaken, Forbidden, IdempotencyInFlight,
    IdempotencyKeyReused, LastOwner, MalformedJson, NotFound, RequestTimeout, RunEnded,
    SessionBusy, SlugTaken, TooManyQueuedRuns, Unavailable, UnsupportedMediaType, VersionMismatch,
};

/// An operation's own problems.
const OF: &[(&str, &[Code])] = &[
    ("ready", &[Unavailable]),
    ("create_user", &[Forbidden, EmailTaken]),
    ("update_user", &[Forbidden, LastOwner]),
    ("create_api_key", &[Forbidden, NotFound]),
    ("revoke_api_key", &[Forbidden]),
    ("create_tenant", &[SlugTaken]),
    ("list_audit_events", &[Forbidden]),
    ("read_usage", &[Forbidden]),
    ("create_agent", &[Forbidden, SlugTaken]),
    ("update_agent", &[Forbidden, VersionMismatch]),
    ("archive_agent", &[Forbidden]),
    (
        "create_session",
        &[AgentArchived, IdempotencyInFlight, IdempotencyKeyReused],
    ),
    ("delete_session", &[SessionBusy]),
    (
        "append_message",
        &[SessionBusy, IdempotencyInFlight, IdempotencyKeyReused],
    ),
    (
        "create_run",
        &[
            AgentArchived,
            SessionBusy,
            TooManyQueuedRuns,
            IdempotencyInFlight,
            IdempotencyKeyReused,
        ],
    ),
    (
        "cancel_run",
        // A body that says nothing may be there.
        &[
            RunEnded,
            MalformedJson,
            RequestTimeout,
            BodyTooLarge,
            UnsupportedMediaType,
        ],
    ),
];

/// The problems that only this operation, or some, can answer with.
pub(super) fn of(operation: &str) -> impl Iterator<Item = Code> {
    let own = OF.iter().filter(move |(id, _)| *id == operation);
    own.flat_map(|(_, codes)| codes.iter().copied())
}

/// Whether a `POST` there can be made sure to happen once.
pub(super) fn takes_idempotency_key(path: &str) -> bool {
    matches!(
        path,
        "/v1/sessions" | "/v1/sessions/{session}/messages" | "/v1/sessions/{session}/runs"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_refused_by_an_operation_that_is_there() {
        let document = crate::document().to_string();

        for (id, _) in OF {
            let id = format!(r#""operationId":"{id}""#);
            assert!(document.contains(&id), "{id}");
        }
    }
}

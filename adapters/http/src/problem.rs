//! Errors as `application/problem+json` (RFC 9457).
//!
//! The only module that knows both an error and a status. A 4xx says what the caller can change; a 5xx
//! says nothing but its kind, and the log the rest.
//!
//! A problem travels inside its response until the outermost layer writes it down: only that layer knows
//! the request's id, and whatever answers on the way is written by the same hand.

use std::error::Error;
use std::iter::successors;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hango_application::use_cases::{Fault, Unauthenticated, UseCaseError};
use hango_ports::StoreFailure;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use crate::head::{MAX_HEAD, MAX_HEADERS, Refusal};
use crate::openapi::schema;
use crate::rates::TooMany;

/// Seconds after which a caller may try again what could not be done now.
const RETRY_AFTER: u64 = 1;

/// What went wrong, for a caller.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: String,
    faults: Vec<Fault>,
    /// For the log only.
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

/// A problem as it is written down.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem, example = json!({
    "type": "urn:hango:problem:validation", "title": "Validation failed", "status": 422,
    "code": "validation", "detail": "1 field is not acceptable", "request_id": "018f…",
    "errors": [{"pointer": "/tools/0", "code": "unknown_tool", "detail": "no tool named \"shell\" is registered"}]
}))]
pub(crate) struct ProblemBody<'a> {
    /// `urn:hango:problem:` and the code.
    r#type: String,
    /// For people.
    title: &'static str,
    status: u16,
    /// For programs; stable.
    #[schema(schema_with = Code::schema)]
    code: &'static str,
    /// For people: this occurrence.
    detail: &'a str,
    request_id: &'a str,
    /// Everything that is wrong with what was sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<Entry<'a>>,
}

/// One thing that is wrong with what was sent.
#[derive(Serialize, ToSchema)]
#[schema(as = ProblemEntry)]
pub(crate) struct Entry<'a> {
    /// Where, as a JSON pointer into the body, or `/query/…` or `/header/…`.
    pointer: &'a str,
    /// For programs.
    #[schema(schema_with = schema::fault_code)]
    code: &'static str,
    /// For people.
    detail: &'a str,
}

/// The closed list of what can go wrong; documented with the API.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Code {
    MalformedJson,
    InvalidCursor,
    MalformedRequest,
    Unauthenticated,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    SlugTaken,
    EmailTaken,
    LastOwner,
    AgentArchived,
    SessionBusy,
    RunEnded,
    IdempotencyInFlight,
    VersionMismatch,
    BodyTooLarge,
    UnsupportedMediaType,
    Validation,
    IdempotencyKeyReused,
    TooManyQueuedRuns,
    RateLimited,
    HeadersTooLarge,
    Internal,
    Unavailable,
    InsufficientStorage,
}

impl Code {
    /// Every code.
    pub(crate) const ALL: [Self; 26] = [
        Self::MalformedJson,
        Self::InvalidCursor,
        Self::MalformedRequest,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::SlugTaken,
        Self::EmailTaken,
        Self::LastOwner,
        Self::AgentArchived,
        Self::SessionBusy,
        Self::RunEnded,
        Self::IdempotencyInFlight,
        Self::VersionMismatch,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::Validation,
        Self::IdempotencyKeyReused,
        Self::TooManyQueuedRuns,
        Self::RateLimited,
        Self::HeadersTooLarge,
        Self::Internal,
        Self::Unavailable,
        Self::InsufficientStorage,
    ];

    /// Its status, its word for programs, and its title for people.
    const fn row(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::MalformedJson => (S::BAD_REQUEST, "malformed_json", "Malformed JSON"),
            Self::InvalidCursor => (S::BAD_REQUEST, "invalid_cursor", "Invalid cursor"),
            Self::MalformedRequest => (S::BAD_REQUEST, "malformed_request", "Malformed HTTP"),
            Self::Unauthenticated => (S::UNAUTHORIZED, "unauthenticated", "Not authenticated"),
            Self::Forbidden => (S::FORBIDDEN, "forbidden", "Not allowed"),
            Self::NotFound => (S::NOT_FOUND, "not_found", "Not found"),
            Self::MethodNotAllowed => (
                S::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "Method not allowed",
            ),
            Self::RequestTimeout => (S::REQUEST_TIMEOUT, "request_timeout", "Request too slow"),
            Self::SlugTaken => (S::CONFLICT, "slug_taken", "Slug taken"),
            Self::EmailTaken => (S::CONFLICT, "email_taken", "Address taken"),
            Self::LastOwner => (S::CONFLICT, "last_owner", "Last active owner"),
            Self::AgentArchived => (S::CONFLICT, "agent_archived", "Agent archived"),
            Self::SessionBusy => (S::CONFLICT, "session_busy", "Session busy"),
            Self::RunEnded => (S::CONFLICT, "run_ended", "Run ended"),
            Self::IdempotencyInFlight => (
                S::CONFLICT,
                "idempotency_in_flight",
                "First request in flight",
            ),
            Self::VersionMismatch => (
                S::PRECONDITION_FAILED,
                "version_mismatch",
                "Another version",
            ),
            Self::BodyTooLarge => (S::PAYLOAD_TOO_LARGE, "body_too_large", "Body too large"),
            Self::UnsupportedMediaType => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "Unsupported media type",
            ),
            Self::Validation => (S::UNPROCESSABLE_ENTITY, "validation", "Validation failed"),
            Self::IdempotencyKeyReused => (
                S::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused",
                "Idempotency key reused",
            ),
            Self::TooManyQueuedRuns => (
                S::TOO_MANY_REQUESTS,
                "too_many_queued_runs",
                "Too many queued runs",
            ),
            Self::RateLimited => (S::TOO_MANY_REQUESTS, "rate_limited", "Too many requests"),
            Self::HeadersTooLarge => (
                S::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
                "Headers too large",
            ),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
            Self::Unavailable => (S::SERVICE_UNAVAILABLE, "unavailable", "Try again later"),
            Self::InsufficientStorage => (
                S::SERVICE_UNAVAILABLE,
                "insufficient_storage",
                "No room left",
            ),
        }
    }

    fn schema() -> Schema {
        schema::words(Self::ALL.map(Self::word))
    }

    /// Its status.
    pub(crate) const fn status(self) -> StatusCode {
        self.row().0
    }

    /// Its word for programs.
    pub(crate) const fn word(self) -> &'static str {
        self.row().1
    }

    /// Its title for people.
    pub(crate) const fn title(self) -> &'static str {
        self.row().2
    }

    /// Whether it is worth trying again soon, unchanged.
    pub(crate) const fn passes(self) -> bool {
        matches!(
            self,
            Self::IdempotencyInFlight
                | Self::TooManyQueuedRuns
                | Self::RateLimited
                | Self::Unavailable
        )
    }
}

impl Problem {
    /// A problem of `code`; `detail` is about this occurrence and holds no secret.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            faults: Vec::new(),
            cause: None,
        }
    }

    /// What the caller may not see does not exist: one answer for all of it.
    pub(crate) fn not_found() -> Self {
        Self::new(Code::NotFound, "there is nothing here for you")
    }

    /// The path is there, and the method is none of those in `Allow`.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            Code::MethodNotAllowed,
            "this path does not have that method",
        )
    }

    /// A check of the process failed.
    pub(crate) fn not_ready(check: &str) -> Self {
        Self::new(Code::Unavailable, format!("not ready: {check}"))
    }

    /// A defect, or what cannot be helped now: the caller learns no more than that.
    fn failed(code: Code, cause: impl Error + Send + Sync + 'static) -> Self {
        Self {
            cause: Some(Arc::new(cause)),
            ..Self::new(code, "the request could not be completed")
        }
    }

    /// Something panicked; the panic hook wrote down where.
    pub(crate) fn panicked() -> Self {
        Self::new(Code::Internal, "the request could not be completed")
    }

    /// Writes the problem down as the body of `response`, whose other headers stay.
    pub(crate) fn write_to(&self, mut response: Response, request_id: &str) -> Response {
        let (status, code, title) = self.code.row();
        if status.is_server_error() {
            let cause = self.cause.as_deref().map(chain);
            tracing::error!(request_id, code, cause, "{}", self.detail);
        }
        let errors = self.faults.iter().map(|fault| Entry {
            pointer: &fault.pointer,
            code: fault.code.as_str(),
            detail: &fault.detail,
        });
        let body = ProblemBody {
            r#type: format!("urn:hango:problem:{code}"),
            title,
            status: status.as_u16(),
            code,
            detail: &self.detail,
            request_id,
            errors: errors.collect(),
        };
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        let media = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, media);
        if self.code == Code::Unauthenticated {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        if self.code.passes() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
        }
        let text = serde_json::to_vec(&body).expect("a problem is JSON");
        *response.body_mut() = Body::from(text);
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.row().0.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl Code {
    /// What a use case's error is answered with.
    pub(crate) const fn of(error: &UseCaseError) -> Self {
        match error {
            UseCaseError::NotFound => Self::NotFound,
            UseCaseError::Forbidden => Self::Forbidden,
            UseCaseError::Invalid(_) => Self::Validation,
            UseCaseError::SlugTaken => Self::SlugTaken,
            UseCaseError::EmailTaken => Self::EmailTaken,
            UseCaseError::LastOwner => Self::LastOwner,
            UseCaseError::AgentArchived => Self::AgentArchived,
            UseCaseError::VersionMismatch { .. } => Self::VersionMismatch,
            UseCaseError::SessionBusy { .. } => Self::SessionBusy,
            UseCaseError::TooManyQueuedRuns { .. } => Self::TooManyQueuedRuns,
            UseCaseError::RunEnded { .. } => Self::RunEnded,
            UseCaseError::IdempotencyKeyReused => Self::IdempotencyKeyReused,
            UseCaseError::IdempotencyInFlight => Self::IdempotencyInFlight,
            UseCaseError::Failure(failure) => Self::of_failure(failure),
            UseCaseError::PrefixTaken | UseCaseError::Defect(_) => Self::Internal,
        }
    }

    const fn of_failure(failure: &StoreFailure) -> Self {
        match failure {
            StoreFailure::Corrupt { .. } => Self::Internal,
            StoreFailure::OutOfSpace(_) => Self::InsufficientStorage,
            // His key, or he himself, was good when he was let in.
            StoreFailure::ActorRefused => Self::Unauthenticated,
            StoreFailure::Unavailable(_) => Self::Unavailable,
        }
    }
}

impl From<UseCaseError> for Problem {
    fn from(error: UseCaseError) -> Self {
        let code = Code::of(&error);
        match error {
            UseCaseError::NotFound => Self::not_found(),
            UseCaseError::Invalid(faults) => Self {
                detail: match faults.len() {
                    1 => "1 field is not acceptable".to_owned(),
                    n => format!("{n} fields are not acceptable"),
                },
                faults,
                ..Self::new(code, "")
            },
            UseCaseError::Failure(failure) => failure.into(),
            UseCaseError::PrefixTaken | UseCaseError::Defect(_) => Self::failed(code, error),
            UseCaseError::Forbidden
            | UseCaseError::SlugTaken
            | UseCaseError::EmailTaken
            | UseCaseError::LastOwner
            | UseCaseError::AgentArchived
            | UseCaseError::VersionMismatch { .. }
            | UseCaseError::SessionBusy { .. }
            | UseCaseError::TooManyQueuedRuns { .. }
            | UseCaseError::RunEnded { .. }
            | UseCaseError::IdempotencyKeyReused
            | UseCaseError::IdempotencyInFlight => Self::new(code, error.to_string()),
        }
    }
}

impl From<StoreFailure> for Problem {
    fn from(failure: StoreFailure) -> Self {
        match Code::of_failure(&failure) {
            Code::Unauthenticated => Unauthenticated::Refused.into(),
            code => Self::failed(code, failure),
        }
    }
}

impl From<Unauthenticated> for Problem {
    fn from(error: Unauthenticated) -> Self {
        match error {
            Unauthenticated::Refused => Self::new(
                Code::Unauthenticated,
                "a valid API key is needed: Authorization: Bearer hk_…",
            ),
            Unauthenticated::Failure(failure) => failure.into(),
        }
    }
}

impl From<TooMany> for Problem {
    fn from(_: TooMany) -> Self {
        let detail = "this key, or its tenant, makes more requests a second than it may";
        Self::new(Code::RateLimited, detail)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed(why) => Self::new(Code::MalformedRequest, why),
            Refusal::TooLarge => {
                let detail = format!(
                    "a request's line and headers may have {MAX_HEAD} bytes and {MAX_HEADERS} lines"
                );
                Self::new(Code::HeadersTooLarge, detail)
            }
        }
    }
}

/// An error with its causes, in one line.
fn chain(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let first: &(dyn Error + 'static) = error;
    let all: Vec<_> = successors(Some(first), |error| (*error).source())
        .map(ToString::to_string)
        .collect();
    all.join(": ")
}

//! What failures are called where they are counted: `error.type`. A closed list, but for the statuses of
//! HTTP.

use std::borrow::Cow;

use hango_domain::model::FailureCause;
use hango_domain::run::RunErrorCode;
use hango_domain::tool::ToolFailure;

/// A failure's word.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ErrorType(Cow<'static, str>);

impl ErrorType {
    /// A turn's: its process fell silent, and another took the run over.
    pub const WORKER_LOST: Self = Self(Cow::Borrowed("worker_lost"));
    /// A turn's: its process lost the run.
    pub const LEASE_LOST: Self = Self(Cow::Borrowed("lease_lost"));
    /// It was broken off.
    pub const CANCELLED: Self = Self(Cow::Borrowed("cancelled"));
    /// None that has a word.
    pub const OTHER: Self = Self(Cow::Borrowed("_OTHER"));

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// It as text that need not be copied where it is fixed.
    #[must_use]
    pub fn into_text(self) -> Cow<'static, str> {
        self.0
    }

    /// A response's whose status says that the server failed.
    #[must_use]
    pub fn of_status(status: u16) -> Self {
        Self(Cow::Owned(status.to_string()))
    }
}

impl From<ToolFailure> for ErrorType {
    fn from(failure: ToolFailure) -> Self {
        Self(Cow::Borrowed(failure.as_str()))
    }
}

impl From<RunErrorCode> for ErrorType {
    fn from(code: RunErrorCode) -> Self {
        Self(Cow::Borrowed(code.as_str()))
    }
}

impl From<FailureCause> for ErrorType {
    fn from(cause: FailureCause) -> Self {
        match cause {
            FailureCause::Status(status) => Self::of_status(status),
            FailureCause::Timeout => Self(Cow::Borrowed("timeout")),
            FailureCause::Connection => Self(Cow::Borrowed("connection")),
            FailureCause::InvalidResponse => Self(Cow::Borrowed("invalid_response")),
            FailureCause::Other => Self::OTHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_its_own_word_and_what_has_none_is_other() {
        assert_eq!(ErrorType::from(FailureCause::Status(529)).as_str(), "529");
        assert_eq!(ErrorType::from(FailureCause::Other), ErrorType::OTHER);
        assert_eq!(ErrorType::from(ToolFailure::Other), ErrorType::OTHER);
        assert_eq!(ErrorType::from(RunErrorCode::Stalled).as_str(), "stalled");
    }
}

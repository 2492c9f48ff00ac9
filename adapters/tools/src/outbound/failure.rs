//! Why nothing was fetched.

use std::fmt;

/// Why nothing was fetched, in the few words that a model is told.
///
/// They are few and fixed so that they are no oracle: none holds an address, a duration or an error's own
/// text, and a port that is closed reads like one that swallows what it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// It is no URL that may be fetched: malformed, too long, with a user or control characters, or of
    /// another scheme.
    InvalidUrl,
    /// An address is not public, and no operator has opened its network.
    BlockedAddress,
    /// The host, or its port, is not one of those that an operator has listed.
    BlockedHost,
    /// The server sent further on and on.
    TooManyRedirects,
    /// The head of the answer is too long.
    TooLarge,
    /// The server was reached, and did not answer in time.
    Timeout,
    /// No connection could be made, for whatever reason: no such name, nobody there, nobody who can be
    /// trusted.
    Unreachable,
    /// What came is no answer of HTTP, or not one that was asked for.
    BadResponse,
}

impl Failure {
    /// Every one of them.
    pub const ALL: [Self; 8] = [
        Self::InvalidUrl,
        Self::BlockedAddress,
        Self::BlockedHost,
        Self::TooManyRedirects,
        Self::TooLarge,
        Self::Timeout,
        Self::Unreachable,
        Self::BadResponse,
    ];

    /// The word that a model is told.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid_url",
            Self::BlockedAddress => "blocked_address",
            Self::BlockedHost => "blocked_host",
            Self::TooManyRedirects => "too_many_redirects",
            Self::TooLarge => "too_large",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::BadResponse => "bad_response",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Failure {}

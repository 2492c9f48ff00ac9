//! Where a run will be found in a tracing backend: reserved when the run is accepted, so that every
//! process that ever works on it, and the answer to the client, name the same trace.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A W3C trace id: 16 bytes, written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceId(pub [u8; 16]);

/// A W3C span id: 8 bytes, written as 16 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpanId(pub [u8; 8]);

/// The text is not a trace or span id.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is not a lower-case hexadecimal id of the right length")]
pub struct MalformedTraceId(pub String);

/// The identity of a run's root span, and of what created it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RunTrace {
    /// The run's own trace.
    pub trace_id: TraceId,
    /// The root span of that trace.
    pub span_id: SpanId,
    /// Whether the trace is recorded; decided once, so that every process agrees.
    pub sampled: bool,
    /// The span context of the request that created the run, as a W3C `traceparent`; the root span
    /// links to it. `None` when the caller was not traced.
    pub created_by_traceparent: Option<String>,
}

impl RunTrace {
    /// The run's root span as a W3C `traceparent`, for what the run calls.
    #[must_use]
    pub fn traceparent(&self) -> String {
        let flags = u8::from(self.sampled);
        format!("00-{}-{}-{flags:02x}", self.trace_id, self.span_id)
    }
}

macro_rules! hex {
    ($name:ident, $bytes:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl FromStr for $name {
            type Err = MalformedTraceId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let malformed = || MalformedTraceId(text.to_owned());
                let lower_hex = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
                if text.len() != 2 * $bytes || !text.bytes().all(lower_hex) {
                    return Err(malformed());
                }
                let mut id = [0; $bytes];
                for (at, byte) in id.iter_mut().enumerate() {
                    let digits = &text[2 * at..2 * at + 2];
                    *byte = u8::from_str_radix(digits, 16).map_err(|_| malformed())?;
                }
                Ok(Self(id))
            }
        }

        impl TryFrom<String> for $name {
            type Error = MalformedTraceId;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

hex!(TraceId, 16);
hex!(SpanId, 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_reads_back_as_it_was_written() {
        let id = TraceId(*b"\x00\x01\xfe\xff abcdefghijk");

        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn upper_case_and_wrong_lengths_are_not_ids() {
        for text in [
            "",
            "ab",
            "ABCDEF0123456789",
            "abcdef012345678g",
            "+bcdef0123456789",
        ] {
            assert!(text.parse::<SpanId>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_traceparent_is_the_one_of_w3c() {
        let trace = RunTrace {
            trace_id: TraceId([0xab; 16]),
            span_id: SpanId([0x01; 8]),
            sampled: true,
            created_by_traceparent: None,
        };

        assert_eq!(
            trace.traceparent(),
            "00-abababababababababababababababab-0101010101010101-01"
        );
    }
}

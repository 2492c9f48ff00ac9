//! Where a run will be found in a tracing backend: reserved when the run is accepted, so that every
//! process that ever works on it, and the answer to the client, name the same trace.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::RunId;

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

impl SpanId {
    /// The span of a turn in one attempt: derived, so that whoever takes the run over can tell of a turn
    /// whose holder was killed, and what was told below it has its parent.
    #[must_use]
    pub fn of_turn(run: RunId, attempt: u32, turn: u32) -> Self {
        Self::derived(&[&run.0.into_bytes(), &be(attempt), &be(turn)])
    }

    fn derived(from: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in from {
            hash.update(part);
        }
        let mut id = [0; 8];
        id.copy_from_slice(&hash.finalize()[..8]);
        // An id of zeros alone is none.
        id[7] |= u8::from(id == [0; 8]);
        Self(id)
    }
}

const fn be(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Which traces are recorded, so that every process decides alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Below this a trace id is recorded; of 2^63.
    below: u64,
    /// Whether a request that came with a trace is recorded as its caller's is.
    follows_parent: bool,
}

impl Default for Sampling {
    /// Every trace that its caller did not leave out.
    fn default() -> Self {
        Self::share(1.0).following_parents()
    }
}

impl Sampling {
    /// That share of all traces, between 0 and 1, by the last bytes of the trace id.
    #[must_use]
    pub fn share(ratio: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a share of 2^63 needs no last digits, and is none below zero"
        )]
        let below = (ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
        Self {
            below,
            follows_parent: false,
        }
    }

    /// The same, but what has a parent is recorded as that is.
    #[must_use]
    pub const fn following_parents(self) -> Self {
        Self {
            follows_parent: true,
            ..self
        }
    }

    /// Whether a trace of its own is recorded.
    #[must_use]
    pub const fn records(self, trace: TraceId) -> bool {
        let [_, _, _, _, _, _, _, _, end @ ..] = trace.0;
        (u64::from_be_bytes(end) >> 1) < self.below
    }

    /// Whether what belongs to another's trace is recorded.
    #[must_use]
    pub const fn records_within(self, trace: TraceId, parent_is_recorded: bool) -> bool {
        if self.follows_parent {
            parent_is_recorded
        } else {
            self.records(trace)
        }
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
    fn a_turn_of_another_attempt_has_another_span() {
        let run = RunId(uuid::Uuid::from_u128(7));

        let span = SpanId::of_turn(run, 1, 2);

        assert_eq!(span, SpanId::of_turn(run, 1, 2));
        assert_ne!(span, SpanId::of_turn(run, 2, 1));
        assert_ne!(span, SpanId::of_turn(run, 1, 3));
    }

    #[test]
    fn a_share_of_traces_is_recorded_by_the_end_of_their_ids() {
        let trace = |first: u8| {
            let mut id = [0xff; 16];
            id[8] = first;
            TraceId(id)
        };
        let half = Sampling::share(0.5);

        assert!(half.records(trace(0x00)) && half.records(trace(0x7f)));
        assert!(!half.records(trace(0x80)) && !half.records(trace(0xff)));
        assert!(Sampling::share(1.0).records(trace(0xff)));
        assert!(!Sampling::share(0.0).records(TraceId([0; 16])));
        assert!(!Sampling::share(f64::NAN).records(TraceId([0; 16])));
    }

    #[test]
    fn what_has_a_parent_is_recorded_as_that_is_where_parents_are_followed() {
        let trace = TraceId([0; 16]);

        assert!(
            Sampling::share(0.0)
                .following_parents()
                .records_within(trace, true)
        );
        assert!(!Sampling::default().records_within(trace, false));
        assert!(Sampling::share(1.0).records_within(trace, false));
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

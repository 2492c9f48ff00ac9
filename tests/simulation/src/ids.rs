//! Identities of one process: of version 7 in form, growing within the process, and out of the seed. The
//! processes' clocks are apart, so an id says nothing about which of two processes was first.

use std::sync::Mutex;
use std::sync::PoisonError;

use hango_domain::{SpanId, TraceId};
use hango_ports::Ids;
use uuid::Uuid;

use crate::dice::Dice;

/// See the module.
pub(crate) struct SeededIds {
    dice: Dice,
    last: Mutex<u64>,
}

impl SeededIds {
    /// The ids of one process.
    pub(crate) fn new(dice: Dice) -> Self {
        let skew = u64::from(dice.between(0, 1_000_000));
        Self {
            dice,
            last: Mutex::new((0x0199_c000_0000_u64 + skew) << 12),
        }
    }
}

impl Ids for SeededIds {
    fn uuid(&self) -> Uuid {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        let (millis, counter) = (*last >> 12, *last & 0xfff);
        let random = self.dice.bits() & 0x3fff_ffff_ffff_ffff;
        Uuid::from_u64_pair(
            millis << 16 | 0x7000 | counter,
            0x8000_0000_0000_0000 | random,
        )
    }

    fn secret(&self) -> [u8; 32] {
        [7; 32]
    }

    fn trace_id(&self) -> TraceId {
        TraceId([7; 16])
    }

    fn span_id(&self) -> SpanId {
        SpanId([7; 8])
    }
}

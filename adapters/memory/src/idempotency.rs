//! What was answered for idempotency keys.

use std::collections::BTreeMap;

use hango_domain::retention::is_old_answer;
use hango_domain::{TenantId, Timestamp, UserId};
use hango_ports::idempotency::{FirstAnswer, IdempotencyKey, Repeated};
use serde_json::Value;

use crate::state::State;

/// Whose a key is, what it is for, and the key itself.
type Name = (TenantId, UserId, String, String);

/// The answers, with the moment of each.
#[derive(Default)]
pub(crate) struct Answers(BTreeMap<Name, (Timestamp, FirstAnswer)>);

impl State {
    /// Refuses a key for which something was made before.
    pub(crate) fn begin(
        &self,
        once: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Result<(), Repeated> {
        let found = once.and_then(|key| self.answers.0.get(&name(key)));
        match found {
            Some((at, first)) if !is_old_answer(*at, now) => Err(Repeated::Answered(first.clone())),
            _ => Ok(()),
        }
    }

    /// Keeps what was made for a key.
    pub(crate) fn answer(&mut self, once: Option<&IdempotencyKey>, made: Value, now: Timestamp) {
        if let Some(key) = once {
            let first = FirstAnswer {
                body: key.body,
                answer: made,
            };
            self.answers.0.insert(name(key), (now, first));
        }
    }

    /// Removes old answers, so many at most; tells how many.
    pub(crate) fn prune_answers(&mut self, rows: u32, now: Timestamp) -> u64 {
        let answers = self.answers.0.iter();
        let old = answers.filter(|(_, (at, _))| is_old_answer(*at, now));
        let old: Vec<Name> = old
            .take(rows as usize)
            .map(|(name, _)| name.clone())
            .collect();
        for name in &old {
            self.answers.0.remove(name);
        }
        old.len() as u64
    }
}

fn name(key: &IdempotencyKey) -> Name {
    (key.tenant, key.user, key.call.clone(), key.key.clone())
}

//! The ids of calls, as strict servers take them.

use std::collections::{HashMap, HashSet};

/// The most characters that OpenAI takes; what others allow is more.
const MAX_CHARS: usize = 40;

/// How many characters Mistral takes, no more and no fewer.
const NINE: usize = 9;

/// What an id may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IdRule {
    /// Anything that is not too long.
    Short,
    /// Nine letters and digits.
    Nine,
}

/// The ids of one conversation. What an id becomes depends only on those before it, so that a conversation
/// which grows keeps its beginning, and with it the provider's cache.
#[derive(Debug)]
pub(crate) struct Ids {
    rule: IdRule,
    sent: HashMap<String, String>,
    taken: HashSet<String>,
}

impl Ids {
    /// None was sent yet.
    pub(crate) fn new(rule: IdRule) -> Self {
        Self {
            rule,
            sent: HashMap::new(),
            taken: HashSet::new(),
        }
    }

    /// What is sent for an id: the id itself if the rule allows it, else one that is made of it.
    pub(crate) fn sent(&mut self, id: &str) -> String {
        if let Some(sent) = self.sent.get(id) {
            return sent.clone();
        }
        let mut sent = if self.rule.allows(id) {
            id.to_owned()
        } else {
            self.rule.made_of(id, 0)
        };
        let mut count = 0;
        while !self.taken.insert(sent.clone()) {
            count += 1;
            sent = self.rule.made_of(id, count);
        }
        self.sent.insert(id.to_owned(), sent.clone());
        sent
    }
}

impl IdRule {
    fn allows(self, id: &str) -> bool {
        match self {
            Self::Short => id.chars().count() <= MAX_CHARS,
            Self::Nine => id.len() == NINE && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }

    fn made_of(self, id: &str, count: u64) -> String {
        let mut hash = hash(id, count);
        match self {
            Self::Short => format!("call_{hash:016x}"),
            Self::Nine => {
                let digits = (0..NINE).map(|_| {
                    let digit = hash % 62;
                    hash /= 62;
                    match u8::try_from(digit).unwrap_or_default() {
                        digit @ 0..10 => char::from(b'0' + digit),
                        digit @ 10..36 => char::from(b'a' + digit - 10),
                        digit => char::from(b'A' + digit - 36),
                    }
                });
                digits.collect()
            }
        }
    }
}

/// FNV-1a, which is the same in every build. Nobody gains by a collision: the second one is counted on.
fn hash(id: &str, count: u64) -> u64 {
    let bytes = id.bytes().chain(count.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o43_an_id_that_is_too_long_becomes_a_short_one_and_stays_it() {
        let long = "functions.".repeat(5);
        let mut ids = Ids::new(IdRule::Short);

        let sent = [long.as_str(), "call_a", &long].map(|id| ids.sent(id));

        assert_eq!(sent[0], "call_75b9a9c742dbb110");
        assert_eq!(sent[1], "call_a");
        assert_eq!(sent[2], sent[0]);
        assert_eq!(ids.sent(&"é".repeat(40)), "é".repeat(40));
    }

    #[test]
    fn o43_mistral_takes_nine_letters_and_digits() {
        let mut ids = Ids::new(IdRule::Nine);

        let sent = ["aB3456789", "call_a", "aB345678é", "aB3"].map(|id| ids.sent(id));

        assert_eq!(sent[0], "aB3456789");
        for sent in &sent[1..] {
            assert_eq!(sent.len(), 9);
            assert!(sent.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
        assert_ne!(sent[1], sent[2]);
    }

    #[test]
    fn o43_two_calls_never_have_one_id() {
        let made = IdRule::Nine.made_of("call_a", 0);
        let mut ids = Ids::new(IdRule::Nine);

        let [first, second] = [made.as_str(), "call_a"].map(|id| ids.sent(id));

        assert_eq!(first, made);
        assert_eq!(second, IdRule::Nine.made_of("call_a", 1));
    }

    #[test]
    fn o43_a_conversation_that_grows_keeps_its_ids() {
        let all: Vec<String> = (0..50).map(|at| format!("call-{at}")).collect();
        let sent = |ids: &[String]| {
            let mut made = Ids::new(IdRule::Nine);
            ids.iter().map(|id| made.sent(id)).collect::<Vec<_>>()
        };

        assert_eq!(sent(&all)[..20], sent(&all[..20]));
    }
}

//! The text of API keys: `hk_<prefix>_<secret>`.
//!
//! The prefix finds the key's row; of the secret only a hash is kept. A secret made here is 256 random
//! bits in 43 letters and digits; an operator may bring one of his own, of at least 32 characters.

use std::fmt;
use std::str::FromStr;

use hango_domain::ApiKeyId;
use hango_ports::Ids;
use sha2::{Digest, Sha256};
use thiserror::Error;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX_LENGTH: usize = 12;
/// 62^43 is the first power of 62 beyond 2^256.
const SECRET_LENGTH: usize = 43;
/// Fewer characters of an operator's own could be guessed.
pub(super) const SECRET_SHORTEST: usize = 32;
/// Longer ones are nobody's: nothing is hashed for them.
const SECRET_LONGEST: usize = 256;

/// A key's whole text. It is not shown by `Debug`.
#[derive(Clone, Eq, PartialEq)]
pub struct KeyText(String);

/// The text is not that of a key.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "a key reads hk_<prefix>_<secret>: a prefix of 12 letters and digits, a secret of at least 32 \
     letters, digits, '-' and '_'"
)]
pub struct MalformedKey;

/// A key, by something that is known of it and is no secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyName {
    /// Its prefix.
    Prefix(String),
    /// Its id.
    Id(ApiKeyId),
}

/// The text names no key. It is not repeated: it may be a part of a secret.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "that names no key; give its prefix (the 12 letters and digits behind hk_), its whole text, or its id"
)]
pub struct NamesNoKey;

/// A new key: its text for its user, the rest for the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MintedKey {
    /// The whole text; shown once.
    pub text: KeyText,
    /// The part by which it is found.
    pub prefix: String,
    /// SHA-256 of the secret part.
    pub secret_hash: [u8; 32],
}

/// Makes a key that nobody can guess.
#[must_use]
pub fn mint_key(ids: &dyn Ids) -> MintedKey {
    let prefix = base62::<PREFIX_LENGTH>(ids.secret());
    let secret = base62::<SECRET_LENGTH>(ids.secret());
    MintedKey {
        secret_hash: hash(&secret),
        text: KeyText(format!("hk_{prefix}_{secret}")),
        prefix,
    }
}

impl KeyText {
    /// The key of that text.
    pub fn parse(text: &str) -> Result<Self, MalformedKey> {
        parts(text).ok_or(MalformedKey)?;
        Ok(Self(text.to_owned()))
    }

    /// The text, for the one who may know it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The key as it is stored.
    pub(super) fn minted(self) -> MintedKey {
        let (prefix, secret) = parts(&self.0).unwrap_or_default();
        MintedKey {
            prefix: prefix.to_owned(),
            secret_hash: hash(secret),
            text: self,
        }
    }
}

impl FromStr for KeyName {
    type Err = NamesNoKey;

    /// Reads a prefix, alone or in a key's text, or an id. What stands behind the prefix is not looked at:
    /// whoever names a key by its text need not have copied all of it.
    fn from_str(text: &str) -> Result<Self, NamesNoKey> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let prefix = match text.strip_prefix("hk_") {
            Some(rest) => rest.split_once('_').map_or(rest, |(prefix, _)| prefix),
            None => text,
        };
        if is_prefix(prefix) {
            Ok(Self::Prefix(prefix.to_owned()))
        } else {
            Err(NamesNoKey)
        }
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(f, "prefix {prefix}"),
            Self::Id(id) => write!(f, "id {id}"),
        }
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(…)")
    }
}

/// The prefix and the secret of a key's text; `None` if it is not one.
pub(super) fn parts(text: &str) -> Option<(&str, &str)> {
    let (prefix, secret) = text.strip_prefix("hk_")?.split_once('_')?;
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    let ok = is_prefix(prefix)
        && (SECRET_SHORTEST..=SECRET_LONGEST).contains(&secret.len())
        && secret.bytes().all(plain);
    ok.then_some((prefix, secret))
}

fn is_prefix(text: &str) -> bool {
    text.len() == PREFIX_LENGTH && text.bytes().all(|c| c.is_ascii_alphanumeric())
}

/// What is stored of a secret.
pub(super) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// The last `LENGTH` digits of a number of 256 bits, to the base 62.
fn base62<const LENGTH: usize>(mut number: [u8; 32]) -> String {
    let mut digits = [b'0'; LENGTH];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0;
        for byte in &mut number {
            let dividend = remainder * 256 + u16::from(*byte);
            *byte = u8::try_from(dividend / 62).unwrap_or(u8::MAX);
            remainder = dividend % 62;
        }
        *digit = ALPHABET[usize::from(remainder)];
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use hango_ports::ids::MockIds;

    use super::*;

    #[test]
    fn a_key_has_a_prefix_of_12_and_a_secret_of_43_letters_and_digits() {
        let mut ids = MockIds::new();
        ids.expect_secret().return_const([0xff; 32]);

        let key = mint_key(&ids);

        let text = key.text.expose().to_owned();
        let (prefix, secret) = text[3..].split_once('_').unwrap_or_default();
        assert_eq!((prefix.len(), secret.len()), (12, 43));
        assert_eq!(prefix, key.prefix);
        assert_eq!(KeyText::parse(&text), Ok(key.text.clone()));
        assert_eq!(key.text.clone().minted(), key);
    }

    #[test]
    fn all_of_the_256_bits_are_in_the_secret() {
        let mut smallest = [0; 32];
        smallest[31] = 61;
        let mut next = [0; 32];
        next[31] = 62;

        assert_eq!(base62::<43>([0; 32]), "0".repeat(43));
        assert_eq!(base62::<43>(smallest), format!("{}z", "0".repeat(42)));
        assert_eq!(base62::<43>(next), format!("{}10", "0".repeat(41)));
        // 2^256 - 1, which the highest digit just holds.
        assert!(base62::<43>([0xff; 32]) > "0".repeat(43));
        assert_ne!(base62::<43>([0xff; 32]).as_bytes()[0], b'0');
    }

    #[test]
    fn an_operators_own_key_may_hold_hyphens_and_underscores() {
        let secret = "local_dev-key_".repeat(3);

        assert!(KeyText::parse(&format!("hk_bootstrap001_{secret}")).is_ok());
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        let secret = "s".repeat(43);
        for text in [
            String::new(),
            "hk_".to_owned(),
            format!("hk_short_{secret}"),
            format!("hk_bootstrap0012_{secret}"),
            format!("hk_bootstrap-01_{secret}"),
            format!("sk_bootstrap001_{secret}"),
            format!("hk_bootstrap001_{}", "s".repeat(31)),
            format!("hk_bootstrap001_{}", "s".repeat(257)),
            format!("hk_bootstrap001_{secret} "),
            format!("hk_bootstrap001_{secret}é"),
        ] {
            assert_eq!(KeyText::parse(&text), Err(MalformedKey), "{text}");
        }
    }

    #[test]
    fn a_key_is_named_by_its_prefix_its_text_or_its_id() {
        let prefix = Ok(KeyName::Prefix("bootstrap001".to_owned()));
        for text in [
            "bootstrap001",
            "hk_bootstrap001",
            "hk_bootstrap001_",
            "hk_bootstrap001_half-of-a_secret",
            &format!("hk_bootstrap001_{}", "s".repeat(43)),
        ] {
            assert_eq!(text.parse(), prefix, "{text}");
        }
        let id = "0199a000-0000-7000-8000-000000000001";
        assert_eq!(id.parse(), Ok(KeyName::Id(id.parse().unwrap())));
        for text in [
            "",
            "hk_",
            "bootstrap01",
            "bootstrap-01",
            "hk_canary_hk_bootstrap001",
            "sk_bootstrap001_canary",
        ] {
            let refused = text.parse::<KeyName>();
            assert_eq!(refused, Err(NamesNoKey), "{text}");
            assert!(!NamesNoKey.to_string().contains("canary"));
        }
    }

    #[test]
    fn debug_output_does_not_tell_the_secret() {
        let text = format!("hk_bootstrap001_{}", "s".repeat(43));
        let key = KeyText::parse(&text);

        assert_eq!(format!("{key:?}"), "Ok(KeyText(…))");
    }
}

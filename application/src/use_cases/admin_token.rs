//! The operator's token, which opens the calls that make tenants.

use std::fmt;

use subtle::ConstantTimeEq;
use thiserror::Error;

use super::keys;

/// The fewest characters of a token: as many as the secret of a key has that an operator brings himself.
const SHORTEST: usize = keys::SECRET_SHORTEST;

/// A token, of which only a hash is kept: it is compared with in constant time, whatever its length.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct AdminToken([u8; 32]);

/// The text cannot be a token. It is not repeated.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum UnfitToken {
    /// A header cannot carry it.
    #[error("not visible ASCII characters, which a header can carry")]
    NotVisible,
    /// It could be guessed.
    #[error(
        "shorter than {SHORTEST} characters, which could be guessed; `openssl rand -hex 32` makes one"
    )]
    TooShort,
}

impl AdminToken {
    /// The token of that text.
    pub fn parse(text: &str) -> Result<Self, UnfitToken> {
        if !text.bytes().all(|c| c == b' ' || c.is_ascii_graphic()) {
            return Err(UnfitToken::NotVisible);
        }
        if text.len() < SHORTEST {
            return Err(UnfitToken::TooShort);
        }
        Ok(Self(keys::hash(text)))
    }

    /// Whether who presents this text is an operator.
    #[must_use]
    pub fn is(&self, presented: &str) -> bool {
        keys::hash(presented).ct_eq(&self.0).into()
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_for_its_very_text_alone() {
        let text = "open sesame, said the one operator";
        let token = AdminToken::parse(text).unwrap();

        assert!(token.is(text));
        for other in [
            "",
            "open",
            &text[1..],
            &format!("{text} "),
            &text.to_uppercase(),
        ] {
            assert!(!token.is(other), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "AdminToken(…)");
    }

    #[test]
    fn a_token_is_too_long_to_be_guessed() {
        for (text, fit) in [
            (String::new(), Err(UnfitToken::TooShort)),
            ("secret".to_owned(), Err(UnfitToken::TooShort)),
            ("a".repeat(31), Err(UnfitToken::TooShort)),
            ("a".repeat(32), Ok(())),
            ("a b-".repeat(16), Ok(())),
            ("\u{e4}".repeat(32), Err(UnfitToken::NotVisible)),
            (format!("{}\n", "a".repeat(32)), Err(UnfitToken::NotVisible)),
        ] {
            assert_eq!(AdminToken::parse(&text).map(drop), fit, "{text}");
        }
    }
}

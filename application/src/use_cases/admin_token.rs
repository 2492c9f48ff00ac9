//! The operator's token, which opens the calls that make tenants.

use std::fmt;

use subtle::ConstantTimeEq;

use super::keys;

/// A token, of which only a hash is kept: it is compared with in constant time, whatever its length.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct AdminToken([u8; 32]);

impl AdminToken {
    /// The token of that text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(keys::hash(text))
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
        let token = AdminToken::new("open sesame");

        assert!(token.is("open sesame"));
        for other in ["", "open", "open sesame ", "Open sesame"] {
            assert!(!token.is(other), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "AdminToken(…)");
    }
}

//! What a service was called with and no model may read: pages for developers quote whole requests.

use http::HeaderMap;

/// What stands in the place of a secret.
const INSTEAD: &str = "[secret]";

/// Shorter texts are no secrets, and stand in every other sentence.
const SHORTEST: usize = 8;

/// The texts that are kept out of errors.
#[derive(Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The values of an operator's headers, and the last word of each: a scheme such as `Bearer` may
    /// be quoted or not.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers.values().filter_map(|value| value.to_str().ok());
        let texts = values.flat_map(|value| [value, value.rsplit(' ').next().unwrap_or(value)]);
        let secrets = texts.filter(|text| text.len() >= SHORTEST);
        Self(secrets.map(str::to_owned).collect())
    }

    /// How long the longest is, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.0.iter().map(String::len).max().unwrap_or(0)
    }

    /// `text` without them.
    pub(super) fn scrub(&self, text: &str) -> String {
        let scrub = |text: String, secret: &String| text.replace(secret, INSTEAD);
        self.0.iter().fold(text.to_owned(), scrub)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{ACCEPT, AUTHORIZATION};

    use super::*;

    #[test]
    fn a_value_is_left_out_with_and_without_its_scheme() {
        let value = HeaderValue::from_static;
        let secrets = Secrets::of(&HeaderMap::from_iter([
            (AUTHORIZATION, value("Bearer abcdefgh")),
            (ACCEPT, value("json")),
        ]));

        let text = secrets.scrub("json: Bearer abcdefgh, abcdefgh, Bearer abcdefg");

        assert_eq!(text, "json: [secret], [secret], Bearer abcdefg");
        assert_eq!(secrets.longest(), 15);
    }
}

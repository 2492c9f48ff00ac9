//! What is wrong with a configuration: everything at once, so that nobody mends it one start at a time.

use std::fmt;

/// What is wrong, in the order in which it was found.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    /// Notes that `what` is wrong at `place`: a variable, or a key of the file.
    pub(crate) fn at(&mut self, place: impl fmt::Display, what: impl fmt::Display) {
        self.0.push(format!("{place}: {what}"));
    }

    /// Keeps what went well, notes what did not.
    pub(crate) fn keep<T, E: fmt::Display>(
        &mut self,
        place: impl fmt::Display,
        result: Result<T, E>,
    ) -> Option<T> {
        result
            .map_err(|what| self.at(place, format_args!("{what:#}")))
            .ok()
    }

    /// Fails if anything is wrong.
    pub(crate) fn check(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration does not work")?;
        self.0
            .iter()
            .try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}

/// The name among `known` that `unknown` was probably meant to be.
pub(super) fn nearest<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .min_by_key(|name| strsim::damerau_levenshtein(unknown, name))
}

/// Says that a name is unknown, and which one is near.
pub(super) fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown; did you mean {near}?"),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_printed_at_once() {
        let mut problems = Problems::default();

        problems.at("HANGO_LISTEN", "not an address");
        problems.at("providers.local.kind", "missing");

        assert_eq!(
            problems.to_string(),
            "the configuration does not work\n  HANGO_LISTEN: not an address\n  providers.local.kind: missing"
        );
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest_one() {
        let known = ["run_lease_ttl", "run_workers", "listen"];

        assert_eq!(
            unknown("run_leese_ttl", known),
            "unknown; did you mean run_lease_ttl?"
        );
    }
}

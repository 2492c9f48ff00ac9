//! What a caller sent, and everything that is wrong with it.
//!
//! The edge finds what is wrong with the form, a use case what is wrong with the meaning; the caller is
//! told both at once, after it is settled that what he names exists for him and that his role allows
//! the action. So faults travel with the value until then.

use std::collections::BTreeSet;

use hango_domain::people::{LONGEST_NAME, NameFault, name_fault};

use super::UseCaseError;

/// One thing that is wrong with what a caller sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Where, as a JSON pointer into the body, or `/name` of a query parameter.
    pub pointer: String,
    /// What, for programs.
    pub code: FaultCode,
    /// What, for people.
    pub detail: String,
}

/// The closed list of what can be wrong with a field; documented with the API.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FaultCode {
    /// It must be there.
    Required,
    /// It is of another JSON type.
    InvalidType,
    /// It does not have its form.
    InvalidFormat,
    /// It is smaller or larger than it may be.
    OutOfRange,
    /// It holds text that cannot be kept.
    InvalidText,
    /// Nobody knows it.
    UnknownField,
    /// The tenant has no such agent.
    UnknownAgent,
    /// No such tool is registered.
    UnknownTool,
    /// No such provider is configured.
    UnknownProvider,
    /// It is wider than the server's own limit.
    LimitTooLarge,
    /// It says nothing.
    Empty,
}

impl FaultCode {
    /// Every code.
    pub const ALL: [Self; 11] = [
        Self::Required,
        Self::InvalidType,
        Self::InvalidFormat,
        Self::OutOfRange,
        Self::InvalidText,
        Self::UnknownField,
        Self::UnknownAgent,
        Self::UnknownTool,
        Self::UnknownProvider,
        Self::LimitTooLarge,
        Self::Empty,
    ];

    /// The word of the HTTP contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::InvalidType => "invalid_type",
            Self::InvalidFormat => "invalid_format",
            Self::OutOfRange => "out_of_range",
            Self::InvalidText => "invalid_text",
            Self::UnknownField => "unknown_field",
            Self::UnknownAgent => "unknown_agent",
            Self::UnknownTool => "unknown_tool",
            Self::UnknownProvider => "unknown_provider",
            Self::LimitTooLarge => "limit_too_large",
            Self::Empty => "empty",
        }
    }
}

impl Fault {
    /// A fault of `code` at `pointer`.
    #[must_use]
    pub fn new(pointer: impl Into<String>, code: FaultCode, detail: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            code,
            detail: detail.into(),
        }
    }
}

/// A value as far as it could be read, and what was wrong with the rest. Where something was wrong the
/// value holds a default, so that the rest can be judged all the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Input<T> {
    value: T,
    faults: Vec<Fault>,
}

impl<T> Input<T> {
    /// A value in which nothing is wrong so far.
    pub const fn new(value: T) -> Self {
        Self::with_faults(value, Vec::new())
    }

    /// A value in which `faults` were found.
    pub const fn with_faults(value: T, faults: Vec<Fault>) -> Self {
        Self { value, faults }
    }

    /// Adds what `judge` finds wrong, but for places where something is known to be wrong already:
    /// what it saw there is a default.
    #[must_use]
    pub fn judged(mut self, judge: impl FnOnce(&T, &mut Vec<Fault>)) -> Self {
        let mut found = Vec::new();
        judge(&self.value, &mut found);
        let known: BTreeSet<&str> = self.faults.iter().map(|old| &*old.pointer).collect();
        found.retain(|new| !overlaps(&new.pointer, &known));
        self.faults.append(&mut found);
        self
    }

    /// The value as far as it could be read.
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// Whether something is wrong.
    pub const fn is_faulty(&self) -> bool {
        !self.faults.is_empty()
    }

    /// The value, if nothing is wrong with it.
    pub fn accepted(self) -> Result<T, UseCaseError> {
        if self.is_faulty() {
            Err(UseCaseError::Invalid(self.faults))
        } else {
            Ok(self.value)
        }
    }
}

/// Notes what is wrong with the name at `pointer`, whatever bears it.
pub(super) fn judge_name(pointer: &str, name: &str, faults: &mut Vec<Fault>) {
    let Some(fault) = name_fault(name) else {
        return;
    };
    let (code, detail) = match fault {
        NameFault::Blank => (FaultCode::Empty, "it is blank".to_owned()),
        NameFault::TooLong => {
            let detail = format!("it may have {LONGEST_NAME} characters");
            (FaultCode::OutOfRange, detail)
        }
        NameFault::Control => {
            let detail = "it may hold no control characters".to_owned();
            (FaultCode::InvalidText, detail)
        }
    };
    faults.push(Fault::new(pointer, code, detail));
}

/// Whether a place is one of those that are known, lies in one, or has one in it. Asked of each of many
/// places, so not of each of the known ones.
fn overlaps(place: &str, known: &BTreeSet<&str>) -> bool {
    let outer = place.match_indices('/').map(|(at, _)| &place[..at]);
    if outer.chain([place]).any(|outer| known.contains(outer)) {
        return true;
    }
    let inner = format!("{place}/");
    let first = known.range(inner.as_str()..).next();
    first.is_some_and(|first| first.starts_with(&inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_to_be_wrong_is_not_judged_again() {
        let known = Fault::new("/tools/0", FaultCode::InvalidType, "text is expected");
        let input = Input::with_faults((), vec![known.clone()]);
        let here = Fault::new("/tools/1", FaultCode::UnknownTool, "no such tool");

        let judged = input.judged(|(), faults| {
            faults.push(Fault::new("/tools/0", FaultCode::UnknownTool, ""));
            faults.push(Fault::new("/tools", FaultCode::Empty, ""));
            faults.push(here.clone());
        });

        let Err(UseCaseError::Invalid(faults)) = judged.accepted() else {
            panic!("nothing is wrong");
        };
        assert_eq!(faults, [known, here]);
    }

    #[test]
    fn places_of_like_names_are_different_places() {
        let known = BTreeSet::from(["/tools/0", "/tool-s", "/title"]);

        for place in ["/tools/0", "/tools", "", "/tools/0/name", "/title/x"] {
            assert!(overlaps(place, &known), "{place}");
        }
        for place in ["/tool", "/tools/1", "/tools/00", "/titles", "/tools/0x"] {
            assert!(!overlaps(place, &known), "{place}");
        }
    }
}

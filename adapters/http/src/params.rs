//! What is in a request's path and query.
//!
//! A malformed id is an id that was never issued, so it becomes one that never is: nothing is told
//! about it that would not be told about any other.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use hango_application::use_cases::{Fault, FaultCode, Input};
use hango_domain::Timestamp;
use hango_ports::agent_store::AgentRef;
use http::request::Parts;
use uuid::Uuid;

use crate::fields::{escaped, one_of, unknown};
use crate::paging::Paging;
use crate::problem::Problem;
use crate::time;

/// The id in a path; the nil one if there is none that could be.
pub(crate) struct PathId<T>(pub(crate) T);

/// The agent in a path.
pub(crate) struct PathAgent(pub(crate) AgentRef);

/// A query's parameters; each is taken once, and what is left is unknown.
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
    /// Those that decide what a list holds, as they were said.
    filters: Vec<(String, String)>,
    /// Those that were asked for.
    known: Vec<&'static str>,
    faults: Vec<Fault>,
}

impl Params {
    /// The value of a parameter that may be given once. It decides what a list holds.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<String> {
        let values = self.take_all(name);
        self.single(name, values)
    }

    /// The values of a parameter that may be given several times. They decide what a list holds.
    pub(crate) fn take_all(&mut self, name: &'static str) -> Vec<String> {
        let values = self.remove(name);
        let said = values.iter().map(|value| (name.to_owned(), value.clone()));
        self.filters.extend(said);
        values
    }

    /// An id.
    pub(crate) fn id<T: From<Uuid>>(&mut self, name: &'static str) -> Option<T> {
        let value = self.take(name)?;
        let id = canonical(&value);
        if id.is_none() {
            self.fault(name, FaultCode::InvalidFormat, "an id is expected");
        }
        id.map(T::from)
    }

    /// An agent, by its id or its slug.
    pub(crate) fn agent(&mut self, name: &'static str) -> Option<AgentRef> {
        let value = self.take(name)?;
        let agent = agent_ref(&value);
        if agent.is_none() {
            let detail = "an agent's id or slug is expected";
            self.fault(name, FaultCode::InvalidFormat, detail);
        }
        agent
    }

    /// Some of a closed list of words.
    pub(crate) fn words<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Vec<T> {
        let said = self.take_all(name);
        let known = |said: &String| words.iter().find(|(word, _)| word == said);
        if !said.iter().all(|said| known(said).is_some()) {
            self.fault(name, FaultCode::InvalidFormat, one_of(words));
        }
        let known = said.iter().filter_map(known);
        known.map(|(_, meaning)| *meaning).collect()
    }

    /// One of a closed list of words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let said = self.take(name)?;
        let known = words.iter().find(|(word, _)| *word == said);
        if known.is_none() {
            self.fault(name, FaultCode::InvalidFormat, one_of(words));
        }
        known.map(|(_, meaning)| *meaning)
    }

    /// A whole number in a range.
    pub(crate) fn number(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        let value = self.take(name)?;
        self.in_range(name, &value, least, most)
    }

    /// A moment.
    pub(crate) fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        let value = self.take(name)?;
        let time = time::parse(&value);
        if time.is_none() {
            let detail = "a moment of RFC 3339 is expected, such as 2026-01-31T00:00:00Z";
            self.fault(name, FaultCode::InvalidFormat, detail);
        }
        time
    }

    /// Which piece of the list, of which the filters were taken before. `list` names it.
    pub(crate) fn paging(&mut self, list: &str) -> Result<Paging, Problem> {
        let limit = self.remove("limit");
        let limit = self.single("limit", limit);
        let limit = limit.and_then(|limit| self.in_range("limit", &limit, 1, Paging::MOST));
        let cursor = self.remove("cursor");
        let cursor = self.single("cursor", cursor);
        Paging::new(list, &self.filters, limit, cursor.as_deref())
    }

    /// What was read from the query, with what is wrong with the query.
    pub(crate) fn input<T>(self, value: T) -> Input<T> {
        Input::with_faults(value, self.unknown())
    }

    /// What is wrong with the query; what is left in it is unknown.
    pub(crate) fn unknown(mut self) -> Vec<Fault> {
        for (name, _) in std::mem::take(&mut self.pairs) {
            let detail = unknown("parameter", &name, &self.known);
            self.fault(&name, FaultCode::UnknownField, detail);
        }
        self.faults
    }

    fn remove(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        let taken = self.pairs.extract_if(.., |(key, _)| key == name);
        taken.map(|(_, value)| value).collect()
    }

    fn single(&mut self, name: &str, mut values: Vec<String>) -> Option<String> {
        if values.len() > 1 {
            self.fault(name, FaultCode::InvalidFormat, "it may be given once");
        }
        values.pop()
    }

    fn in_range(&mut self, name: &str, value: &str, least: u64, most: u64) -> Option<u64> {
        let digits = value.strip_prefix('-').unwrap_or(value);
        if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
            self.fault(name, FaultCode::InvalidFormat, "a whole number is expected");
            return None;
        }
        let number = value.parse().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let detail = format!("{least} to {most} is possible");
            self.fault(name, FaultCode::OutOfRange, detail);
        }
        number
    }

    fn fault(&mut self, name: &str, code: FaultCode, detail: impl Into<String>) {
        let pointer = format!("/{}", escaped(name));
        self.faults.push(Fault::new(pointer, code, detail));
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        Ok(Self {
            pairs: pairs.map(|Query(pairs)| pairs).unwrap_or_default(),
            filters: Vec::new(),
            known: Vec::new(),
            faults: Vec::new(),
        })
    }
}

impl<T: From<Uuid>, S: Send + Sync> FromRequestParts<S> for PathId<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let said = Path::<String>::from_request_parts(parts, state).await;
        let id = said.ok().and_then(|Path(said)| canonical(&said));
        Ok(Self(T::from(id.unwrap_or(Uuid::nil()))))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathAgent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let said = Path::<String>::from_request_parts(parts, state).await;
        let agent = said.ok().and_then(|Path(said)| agent_ref(&said));
        Ok(Self(agent.unwrap_or(AgentRef::Id(Uuid::nil().into()))))
    }
}

/// The agent that `text` names; `None` if no agent can be named so.
pub(crate) fn agent_ref(text: &str) -> Option<AgentRef> {
    if hango_domain::agent::is_slug(text) {
        return Some(AgentRef::Slug(text.to_owned()));
    }
    canonical(text).map(|id| AgentRef::Id(id.into()))
}

/// The id that `text` is, spelled as ids are spelled.
pub(crate) fn canonical(text: &str) -> Option<Uuid> {
    let id = Uuid::from_str(text).ok()?;
    (id.hyphenated().to_string() == text).then_some(id)
}

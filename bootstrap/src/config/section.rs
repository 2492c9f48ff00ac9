//! A section of `hango.toml`, read key by key: what is asked for is known, what is left over is not.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value as Json};

use super::parse::Parsed;
use super::problems::{Problems, unknown};
use super::values::Environment;

/// A section that is being read.
pub(super) struct Section<'a> {
    /// Its name in messages, such as `providers.local`.
    at: String,
    keys: toml::Table,
    asked: BTreeSet<&'static str>,
    problems: &'a mut Problems,
}

impl<'a> Section<'a> {
    /// Begins to read `keys`, which messages call `at`.
    pub(super) fn new(at: String, keys: toml::Table, problems: &'a mut Problems) -> Self {
        Self {
            at,
            keys,
            asked: BTreeSet::new(),
            problems,
        }
    }

    /// A key that may be left out.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<T> {
        let parsed = match self.take(key)? {
            toml::Value::String(text) => parse(text.trim()),
            _ => Err("not a text".to_owned()),
        };
        self.keep(key, parsed)
    }

    /// A key that must be there.
    pub(super) fn required<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<T> {
        if !self.keys.contains_key(key) {
            self.wrong(key, "missing");
        }
        self.optional(key, parse)
    }

    /// A table, as JSON; an empty one if it is left out.
    pub(super) fn json(&mut self, key: &'static str) -> Map<String, Json> {
        let parsed = match self.take(key) {
            None => Ok(Map::new()),
            Some(toml::Value::Table(table)) => as_json(table),
            Some(_) => Err("not a table".to_owned()),
        };
        self.keep(key, parsed).unwrap_or_default()
    }

    /// A list of texts; an empty one if it is left out.
    pub(super) fn texts(&mut self, key: &'static str) -> Vec<String> {
        let parsed = match self.take(key) {
            None => Ok(Vec::new()),
            Some(value) => value
                .try_into()
                .map_err(|_| "not a list of texts".to_owned()),
        };
        self.keep(key, parsed).unwrap_or_default()
    }

    /// Headers; a value `env:NAME` is the variable's. All of them are treated as secrets.
    pub(super) fn headers(&mut self, key: &'static str, environment: &Environment) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in self.json(key) {
            if let Some((name, value)) = self.keep(key, header(&name, &value, environment)) {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// Notes that `what` is wrong with a key.
    pub(super) fn wrong(&mut self, key: &str, what: &str) {
        self.problems.at(format_args!("{}.{key}", self.at), what);
    }

    /// Keeps what went well with a key, notes what did not.
    pub(super) fn keep<T>(&mut self, key: &str, result: Parsed<T>) -> Option<T> {
        self.problems
            .keep(format_args!("{}.{key}", self.at), result)
    }

    /// Ends it: what nobody asked for is unknown.
    pub(super) fn end(self) {
        for key in self.keys.keys() {
            let near = unknown(key, self.asked.iter().copied());
            self.problems.at(format_args!("{}.{key}", self.at), near);
        }
    }

    fn take(&mut self, key: &'static str) -> Option<toml::Value> {
        self.asked.insert(key);
        self.keys.remove(key)
    }
}

fn as_json(table: toml::Table) -> Parsed<Map<String, Json>> {
    match serde_json::to_value(table) {
        Ok(Json::Object(map)) => Ok(map),
        _ => Err("does not read as JSON".to_owned()),
    }
}

fn header(
    name: &str,
    value: &Json,
    environment: &Environment,
) -> Parsed<(HeaderName, HeaderValue)> {
    let text = value
        .as_str()
        .ok_or_else(|| format!("{name} is not a text"))?;
    let text = match text.strip_prefix("env:") {
        Some(variable) => environment
            .get(variable)
            .ok_or_else(|| format!("{name}: the variable {variable} is not set"))?,
        None => text,
    };
    let name = HeaderName::try_from(name).map_err(|_| format!("{name:?} is not a header"))?;
    let mut value =
        HeaderValue::try_from(text).map_err(|_| format!("{name} holds what no header may"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

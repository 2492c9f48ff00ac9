//! Where each setting's text comes from: the environment wins over the file, the file over the default.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::parse::{self, Parsed};
use super::problems::Problems;

/// Environment variables, read once by whoever may.
pub(crate) type Environment = BTreeMap<String, String>;

/// What there is to know of a setting without its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The variable's name.
    pub(crate) name: &'static str,
    /// Its value when nobody says otherwise.
    pub(crate) fallback: Fallback,
    /// How its value may be shown.
    pub(crate) show: Show,
    /// What it means, for people.
    pub(crate) doc: &'static str,
}

/// A setting's value when nobody says otherwise. An empty text means that it is unset.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback {
    /// This text.
    Text(&'static str),
    /// A third of a duration that stands earlier in the table.
    ThirdOf(&'static str),
}

/// How a value may be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Show {
    /// As it is.
    Plain,
    /// Not at all.
    Secret,
    /// A URL, without password and parameters.
    Url,
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    /// The table.
    Default,
    /// `hango.toml`.
    File,
    /// A variable.
    Environment,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
        })
    }
}

impl Setting {
    /// Its key in `hango.toml`.
    pub(crate) fn key(&self) -> String {
        self.name
            .strip_prefix("HANGO_")
            .unwrap_or(self.name)
            .to_ascii_lowercase()
    }
}

/// A setting with its text.
pub(super) struct Value {
    pub(super) setting: &'static Setting,
    pub(super) text: String,
    pub(super) origin: Origin,
}

impl Value {
    /// What an operator calls it: the variable, or the key of the file.
    pub(super) fn place(&self) -> Cow<'static, str> {
        match self.origin {
            Origin::File => self.setting.key().into(),
            Origin::Default | Origin::Environment => self.setting.name.into(),
        }
    }

    /// Its text as anyone may see it.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        match self.setting.show {
            _ if self.text.is_empty() => "".into(),
            Show::Plain => self.text.as_str().into(),
            Show::Secret => "********".into(),
            Show::Url => masked_url(&self.text).into(),
        }
    }
}

/// A URL without what may be secret in it.
pub(super) fn masked_url(text: &str) -> String {
    let without_query = text.split_once('?').map_or(text, |(front, _)| front);
    let Some((scheme, rest)) = without_query.split_once("://") else {
        return "********".to_owned();
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://********@{host}"),
        None => without_query.to_owned(),
    }
}

/// The texts of all settings, in the order of the table.
pub(super) struct Values(Vec<Value>);

impl Values {
    /// Finds the text of every setting. Keys of `file` that are settings' are taken out of it.
    pub(super) fn resolve(
        settings: impl Iterator<Item = &'static Setting>,
        environment: &Environment,
        file: &mut toml::Table,
        problems: &mut Problems,
    ) -> Self {
        let mut values = Self(Vec::new());
        for setting in settings {
            let filed = file
                .remove(&setting.key())
                .and_then(|value| problems.keep(setting.key(), plain_text(value)));
            let (text, origin) = [
                (environment.get(setting.name).cloned(), Origin::Environment),
                (filed, Origin::File),
            ]
            .into_iter()
            .filter_map(|(text, origin)| Some((text?.trim().to_owned(), origin)))
            .find(|(text, _)| !text.is_empty())
            .unwrap_or_else(|| (values.fallback(setting.fallback), Origin::Default));
            values.0.push(Value {
                setting,
                text,
                origin,
            });
        }
        values
    }

    /// Reads one setting, or notes why that fails.
    pub(super) fn read<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Parsed<T>,
        problems: &mut Problems,
    ) -> Option<T> {
        let value = self.0.iter().find(|value| value.setting.name == name)?;
        problems.keep(value.place(), parse(&value.text))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.iter()
    }

    /// The text of `setting` when nobody says otherwise.
    pub(super) fn fallback(&self, fallback: Fallback) -> String {
        let text = |name| {
            self.0
                .iter()
                .find(|value| value.setting.name == name)
                .map_or("", |value| value.text.as_str())
        };
        match fallback {
            Fallback::Text(text) => text.to_owned(),
            // What does not read as a duration is reported where it stands; here it is only not zero.
            Fallback::ThirdOf(name) => {
                let whole = parse::duration(text(name)).unwrap_or(Duration::from_secs(3));
                parse::write_duration(whole / 3)
            }
        }
    }
}

/// The text of a top-level value of the file.
fn plain_text(value: toml::Value) -> Parsed<String> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(switch) => Ok(switch.to_string()),
        toml::Value::Array(items) => {
            let texts: Option<Vec<_>> = items.iter().map(toml::Value::as_str).collect();
            texts
                .map(|texts| texts.join(","))
                .ok_or_else(|| "a list holds texts only".to_owned())
        }
        _ => Err("neither a text nor a number, a switch or a list of texts".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Setting = Setting {
        name: "HANGO_RUN_LEASE_TTL",
        fallback: Fallback::Text("90s"),
        show: Show::Plain,
        doc: "",
    };
    const SWEEP: Setting = Setting {
        name: "HANGO_RUN_RECLAIM_INTERVAL",
        fallback: Fallback::ThirdOf("HANGO_RUN_LEASE_TTL"),
        show: Show::Plain,
        doc: "",
    };

    fn resolved(environment: &[(&str, &str)], file: &str) -> Vec<(String, Origin)> {
        let environment = environment
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        let mut file = file.parse().expect("the test's own file");
        let mut problems = Problems::default();
        let values = Values::resolve(
            [&LEASE, &SWEEP].into_iter(),
            &environment,
            &mut file,
            &mut problems,
        );
        assert_eq!(problems.check(), Ok(()));
        values
            .0
            .into_iter()
            .map(|value| (value.text, value.origin))
            .collect()
    }

    #[test]
    fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
        let file = "run_lease_ttl = '60s'";

        let nothing = resolved(&[], "");
        let filed = resolved(&[], file);
        let set = resolved(&[("HANGO_RUN_LEASE_TTL", " 30s ")], file);

        assert_eq!(nothing[0], ("90s".to_owned(), Origin::Default));
        assert_eq!(filed[0], ("60s".to_owned(), Origin::File));
        assert_eq!(set[0], ("30s".to_owned(), Origin::Environment));
    }

    #[test]
    fn a_derived_default_follows_the_value_it_derives_from() {
        let values = resolved(&[("HANGO_RUN_LEASE_TTL", "60s")], "");

        assert_eq!(values[1], ("20s".to_owned(), Origin::Default));
    }

    #[test]
    fn an_empty_variable_is_no_variable() {
        let values = resolved(&[("HANGO_RUN_LEASE_TTL", "")], "run_lease_ttl = '60s'");

        assert_eq!(values[0], ("60s".to_owned(), Origin::File));
    }

    #[test]
    fn a_shown_url_holds_neither_password_nor_parameters() {
        for (text, shown) in [
            ("sqlite://a/b.db", "sqlite://a/b.db"),
            (
                "postgres://me:pw@host/db?sslmode=require",
                "postgres://********@host/db",
            ),
            ("https://host/v1?key=secret", "https://host/v1"),
            ("me:pw@host", "********"),
        ] {
            assert_eq!(masked_url(text), shown);
        }
    }
}

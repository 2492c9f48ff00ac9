//! The table for people: as it holds, and as help.

use std::fmt::{self, Write};

use super::later::LATER;
use super::settings::SETTINGS;
use super::values::{Fallback, Origin, Setting, Value};
use super::{Config, ProviderKind};

/// A setting as anyone may see it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    name: &'static str,
    text: String,
    origin: Origin,
}

impl Shown {
    /// Whether this is the setting `name`, and somebody chose its value.
    pub(super) fn is_chosen(&self, name: &str) -> bool {
        self.name == name && !matches!(self.origin, Origin::Default)
    }

    pub(super) fn of(value: &Value) -> Self {
        Self {
            name: value.setting.name,
            text: value.shown().into_owned(),
            origin: value.origin,
        }
    }
}

/// The configuration as it holds, secrets masked, and where each value came from.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Shown) -> &str| {
            let widths = self.shown.iter().map(|shown| text(shown).len());
            widths.max().unwrap_or(0)
        };
        let (names, texts) = (width(|shown| shown.name), width(|shown| &shown.text));
        for Shown { name, text, origin } in &self.shown {
            let text = if text.is_empty() { "-" } else { text };
            writeln!(f, "{name:names$}  {text:texts$}  {origin}")?;
        }
        for provider in &self.providers {
            let kind = match provider.kind {
                ProviderKind::Anthropic { .. } => "anthropic",
                ProviderKind::OpenAi { .. } => "openai",
                ProviderKind::Scripted { .. } => "scripted",
            };
            writeln!(f, "provider {} ({kind})", provider.name)?;
        }
        self.http_tools
            .iter()
            .try_for_each(|tool| writeln!(f, "tool {}", tool.name))
    }
}

/// What every variable means and what it is when nobody says otherwise.
pub(crate) fn help() -> String {
    let mut help = "Variables; in hango.toml, without HANGO_ and in lower case:\n".to_owned();
    for setting in SETTINGS {
        describe(&mut help, setting);
    }
    help.push_str(
        "\n\nKnown, and refused by this build, which does not have what they ask for yet:\n",
    );
    for later in LATER {
        describe(&mut help, &later.setting);
    }
    help
}

fn describe(help: &mut String, setting: &Setting) {
    let fallback = match setting.fallback {
        Fallback::Text("") => "unset".to_owned(),
        Fallback::Text(text) => text.to_owned(),
        Fallback::ThirdOf(name) => format!("a third of {name}"),
    };
    let doc = setting.doc.trim();
    // Writing to a string cannot fail.
    let _ = write!(help, "\n  {} [{fallback}]\n      {doc}", setting.name);
}

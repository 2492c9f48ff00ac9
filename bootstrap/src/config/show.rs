//! The table for people: as it holds, and as help.

use std::fmt::{self, Write};

use super::settings::SETTINGS;
use super::values::{Fallback, Origin, Setting, Value, masked_url};
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
            writeln!(f, "provider {} ({})", provider.name, provider.kind)?;
        }
        self.http_tools.iter().try_for_each(|tool| {
            let url = masked_url(tool.url.as_str());
            writeln!(f, "tool {} (http, {url})", tool.name)
        })
    }
}

/// What a provider is and where, without what may be secret in its URL.
impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anthropic { server, .. } => {
                write!(f, "anthropic, {}", masked_url(server.base_url.as_str()))
            }
            Self::OpenAi { server, api, .. } => {
                let url = masked_url(server.base_url.as_str());
                write!(f, "openai, {}, {url}", api.as_str())
            }
            Self::Scripted { script: None } => f.write_str("scripted"),
            Self::Scripted { script: Some(path) } => write!(f, "scripted, {}", path.display()),
        }
    }
}

/// What every variable means and what it is when nobody says otherwise.
pub(crate) fn help() -> String {
    let mut help = "Everything that a start would refuse is refused here too, all at once, with exit status 2; \
                    nothing is connected to and no store is opened.\n\n\
                    Each setting is a variable, or a key of hango.toml: its name without HANGO_, in lower \
                    case. The variable wins. Model providers and tools of your own are sections of \
                    hango.toml, [providers.NAME] and [[tools.http]].\n\nVariables, with their defaults:\n"
        .to_owned();
    for setting in SETTINGS {
        describe(&mut help, setting);
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

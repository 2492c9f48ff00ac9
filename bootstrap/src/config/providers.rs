//! Model providers: `[providers.*]` of the file, those that a variable makes, and the built-in `demo`.

use std::path::PathBuf;

use hango_openai::Settings as OpenAi;
use http::HeaderMap;
use secrecy::SecretString;
use serde_json::Map;

use super::parse::{self, Parsed};
use super::problems::{Problems, nearest};
use super::section::Section;
use super::settings::Settings;
use super::values::Environment;

/// The provider that needs no configuration.
pub(crate) const DEMO: &str = "demo";

/// The provider that `OPENAI_API_KEY` makes.
const OPENAI: &str = "openai";

/// Where it is unless somebody says otherwise.
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// A provider that an operator configured.
#[derive(Clone)]
pub(crate) struct ProviderConfig {
    /// What agents call it.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: ProviderKind,
}

/// What a provider is.
#[derive(Clone)]
pub(crate) enum ProviderKind {
    /// A server that speaks OpenAI's protocol.
    OpenAi(Box<OpenAi>),
    /// Answers from a script.
    Scripted {
        /// The script's file; `None` for the built-in one.
        script: Option<PathBuf>,
    },
}

/// Every provider there is, in the order of their names; `demo` last.
pub(super) fn read(
    sections: toml::Table,
    settings: &Settings,
    environment: &Environment,
    problems: &mut Problems,
) -> Vec<ProviderConfig> {
    let mut providers = Vec::new();
    for (name, section) in sections {
        let at = format!("providers.{name}");
        match (name.as_str(), section) {
            (DEMO, _) => problems.at(at, "demo is built in; take another name"),
            (_, toml::Value::Table(keys)) => {
                let section = Section::new(at, keys, problems);
                let kind = provider(section, &name, settings, environment);
                providers.extend(kind.map(|kind| ProviderConfig { name, kind }));
            }
            _ => problems.at(at, "not a section"),
        }
    }
    if settings.openai_api_key.is_some() || settings.openai_base_url.is_some() {
        add_openai(&mut providers, settings, problems);
    }
    providers.push(ProviderConfig {
        name: DEMO.to_owned(),
        kind: ProviderKind::Scripted { script: None },
    });
    providers
}

fn provider(
    mut section: Section<'_>,
    name: &str,
    settings: &Settings,
    environment: &Environment,
) -> Option<ProviderKind> {
    let provider = match section.required("kind", kind)? {
        Kind::OpenAi => open_ai(&mut section, name, settings, environment)
            .map(Box::new)
            .map(ProviderKind::OpenAi),
        Kind::Scripted => Some(ProviderKind::Scripted {
            script: section.optional("script", parse::text).map(PathBuf::from),
        }),
    };
    section.end();
    provider
}

fn open_ai(
    section: &mut Section<'_>,
    name: &str,
    settings: &Settings,
    environment: &Environment,
) -> Option<OpenAi> {
    section.optional("api", api);
    let base_url = if name == OPENAI {
        section
            .optional("base_url", parse::http_url)
            .or_else(|| OPENAI_URL.parse().ok())
    } else {
        section.required("base_url", parse::http_url)
    };
    let api_key = section.optional("api_key_env", |variable| {
        environment
            .get(variable)
            .map(|key| SecretString::from(key.as_str()))
            .ok_or_else(|| format!("the variable {variable} is not set"))
    });
    if !section.texts("quirks").is_empty() {
        section.wrong("quirks", "this build knows none yet");
    }
    let headers = section.headers("headers", environment);
    let extra_body = section.json("extra_body");
    let mut timeout = |key, for_all| section.optional(key, parse::span).unwrap_or(for_all);
    let connect_timeout = timeout("connect_timeout", settings.provider_connect_timeout);
    let first_byte_timeout = timeout("first_byte_timeout", settings.provider_first_byte_timeout);
    let idle_timeout = timeout("idle_timeout", settings.provider_idle_timeout);
    Some(OpenAi {
        name: name.to_owned(),
        base_url: base_url?,
        api_key,
        headers,
        extra_body,
        connect_timeout,
        first_byte_timeout,
        idle_timeout,
    })
}

/// Makes the provider `openai` of the variables, or lets them win over its section.
fn add_openai(providers: &mut Vec<ProviderConfig>, settings: &Settings, problems: &mut Problems) {
    let known = providers.iter_mut().find(|known| known.name == OPENAI);
    let server = match known.map(|known| &mut known.kind) {
        Some(ProviderKind::OpenAi(server)) => server,
        Some(ProviderKind::Scripted { .. }) => {
            return problems.at("OPENAI_API_KEY", "the provider openai is a scripted one");
        }
        None => return providers.extend(openai_of(settings)),
    };
    if let Some(url) = &settings.openai_base_url {
        server.base_url = url.clone();
    }
    if let Some(key) = &settings.openai_api_key {
        server.api_key = Some(key.clone());
    }
}

/// The provider `openai` of the variables alone.
fn openai_of(settings: &Settings) -> Option<ProviderConfig> {
    let public = || OPENAI_URL.parse().ok();
    let server = OpenAi {
        name: OPENAI.to_owned(),
        base_url: settings.openai_base_url.clone().or_else(public)?,
        api_key: settings.openai_api_key.clone(),
        headers: HeaderMap::new(),
        extra_body: Map::new(),
        connect_timeout: settings.provider_connect_timeout,
        first_byte_timeout: settings.provider_first_byte_timeout,
        idle_timeout: settings.provider_idle_timeout,
    };
    Some(ProviderConfig {
        name: OPENAI.to_owned(),
        kind: ProviderKind::OpenAi(Box::new(server)),
    })
}

enum Kind {
    OpenAi,
    Scripted,
}

fn kind(text: &str) -> Parsed<Kind> {
    match text {
        "openai" => Ok(Kind::OpenAi),
        "scripted" => Ok(Kind::Scripted),
        "anthropic" => Err("this build does not have anthropic yet".to_owned()),
        other => Err(match nearest(other, ["openai", "scripted"]) {
            Some(near) => format!("no kind of provider; did you mean {near}?"),
            None => "no kind of provider".to_owned(),
        }),
    }
}

/// The protocol's variant; this build has one.
fn api(text: &str) -> Parsed<()> {
    match text {
        "chat_completions" => Ok(()),
        "responses" => Err("this build does not have responses yet".to_owned()),
        _ => Err("neither chat_completions nor responses".to_owned()),
    }
}

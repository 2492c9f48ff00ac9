//! Model providers: `[providers.*]` of the file, those that a variable makes, and the built-in `demo`.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use hango_anthropic::Quirk as AnthropicQuirk;
use hango_openai::{Api, Quirk as OpenAiQuirk, UnknownApi};
// Whatever it speaks, a server over HTTP is configured alike.
use hango_openai::Settings as Server;
use http::HeaderMap;
use secrecy::SecretString;
use serde_json::Map;
use url::Url;

use super::parse::{self, Parsed};
use super::problems::{Problems, nearest};
use super::section::Section;
use super::settings::Settings;
use super::values::Environment;

/// The provider that needs no configuration.
pub(crate) const DEMO: &str = "demo";

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
    /// A server that speaks Anthropic's protocol.
    Anthropic {
        /// Where it is.
        server: Box<Server>,
        /// What is odd about it.
        quirks: Vec<AnthropicQuirk>,
    },
    /// A server that speaks one of OpenAI's protocols.
    OpenAi {
        /// Where it is.
        server: Box<Server>,
        /// Which of them.
        api: Api,
        /// What is odd about it.
        quirks: Vec<OpenAiQuirk>,
    },
    /// Answers from a script.
    Scripted {
        /// The script's file; `None` for the built-in one.
        script: Option<PathBuf>,
    },
}

/// A provider that variables make, or whose section they win over.
struct Public<'a> {
    kind: Kind,
    name: &'static str,
    /// Where it is unless somebody says otherwise.
    url: &'static str,
    api_key: Option<&'a SecretString>,
    base_url: Option<&'a Url>,
    /// The variable of its key.
    variable: &'static str,
}

impl<'a> Public<'a> {
    fn all(settings: &'a Settings) -> [Self; 2] {
        [
            Self {
                kind: Kind::Anthropic,
                name: "anthropic",
                url: "https://api.anthropic.com",
                api_key: settings.anthropic_api_key.as_ref(),
                base_url: settings.anthropic_base_url.as_ref(),
                variable: "ANTHROPIC_API_KEY",
            },
            Self {
                kind: Kind::OpenAi,
                name: "openai",
                url: "https://api.openai.com/v1",
                api_key: settings.openai_api_key.as_ref(),
                base_url: settings.openai_base_url.as_ref(),
                variable: "OPENAI_API_KEY",
            },
        ]
    }

    fn is_wanted(&self) -> bool {
        self.api_key.is_some() || self.base_url.is_some()
    }
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
    for public in Public::all(settings) {
        if public.is_wanted() {
            add(&mut providers, &public, settings, problems);
        }
    }
    providers.sort_by(|one, other| one.name.cmp(&other.name));
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
        Kind::Anthropic => {
            let quirks = quirks(&mut section);
            server(&mut section, Kind::Anthropic, name, settings, environment).map(|server| {
                ProviderKind::Anthropic {
                    server: Box::new(server),
                    quirks,
                }
            })
        }
        Kind::OpenAi => {
            let api = section.optional("api", |name| {
                name.parse().map_err(|error: UnknownApi| error.to_string())
            });
            let quirks = quirks(&mut section);
            server(&mut section, Kind::OpenAi, name, settings, environment).map(|server| {
                ProviderKind::OpenAi {
                    server: Box::new(server),
                    api: api.unwrap_or_default(),
                    quirks,
                }
            })
        }
        Kind::Scripted => Some(ProviderKind::Scripted {
            script: section.optional("script", parse::text).map(PathBuf::from),
        }),
    };
    section.end();
    provider
}

fn server(
    section: &mut Section<'_>,
    kind: Kind,
    name: &str,
    settings: &Settings,
    environment: &Environment,
) -> Option<Server> {
    let public = Public::all(settings);
    let public = public
        .iter()
        .find(|public| public.name == name && public.kind == kind);
    let base_url = match public {
        Some(public) => section
            .optional("base_url", parse::http_url)
            .or_else(|| public.url.parse().ok()),
        None => section.required("base_url", parse::http_url),
    };
    let api_key = section.optional("api_key_env", |variable| {
        environment
            .get(variable)
            .map(|key| SecretString::from(key.as_str()))
            .ok_or_else(|| format!("the variable {variable} is not set"))
    });
    let headers = section.headers("headers", environment);
    let extra_body = section.json("extra_body");
    let mut timeout = |key, for_all| section.optional(key, parse::span).unwrap_or(for_all);
    let connect_timeout = timeout("connect_timeout", settings.provider_connect_timeout);
    let first_byte_timeout = timeout("first_byte_timeout", settings.provider_first_byte_timeout);
    let idle_timeout = timeout("idle_timeout", settings.provider_idle_timeout);
    Some(Server {
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

/// Makes a provider of the variables, or lets them win over its section.
fn add(
    providers: &mut Vec<ProviderConfig>,
    public: &Public<'_>,
    settings: &Settings,
    problems: &mut Problems,
) {
    let known = providers.iter_mut().find(|known| known.name == public.name);
    let server = match (public.kind, known.map(|known| &mut known.kind)) {
        (_, None) => return providers.extend(made(public, settings)),
        (Kind::Anthropic, Some(ProviderKind::Anthropic { server, .. }))
        | (Kind::OpenAi, Some(ProviderKind::OpenAi { server, .. })) => server,
        (_, Some(_)) => {
            let name = public.name;
            let what = format!("the provider {name} of the file is of another kind");
            return problems.at(public.variable, what);
        }
    };
    if let Some(url) = public.base_url {
        server.base_url = url.clone();
    }
    if let Some(key) = public.api_key {
        server.api_key = Some(key.clone());
    }
}

/// The provider of the variables alone.
fn made(public: &Public<'_>, settings: &Settings) -> Option<ProviderConfig> {
    let usual = || public.url.parse().ok();
    let server = Box::new(Server {
        name: public.name.to_owned(),
        base_url: public.base_url.cloned().or_else(usual)?,
        api_key: public.api_key.cloned(),
        headers: HeaderMap::new(),
        extra_body: Map::new(),
        connect_timeout: settings.provider_connect_timeout,
        first_byte_timeout: settings.provider_first_byte_timeout,
        idle_timeout: settings.provider_idle_timeout,
    });
    let kind = match public.kind {
        Kind::Anthropic => ProviderKind::Anthropic {
            server,
            quirks: Vec::new(),
        },
        Kind::OpenAi => ProviderKind::OpenAi {
            server,
            api: Api::default(),
            quirks: Vec::new(),
        },
        Kind::Scripted => return None,
    };
    Some(ProviderConfig {
        name: public.name.to_owned(),
        kind,
    })
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    Anthropic,
    OpenAi,
    Scripted,
}

fn kind(text: &str) -> Parsed<Kind> {
    match text {
        "anthropic" => Ok(Kind::Anthropic),
        "openai" => Ok(Kind::OpenAi),
        "scripted" => Ok(Kind::Scripted),
        other => Err(match nearest(other, ["anthropic", "openai", "scripted"]) {
            Some(near) => format!("no kind of provider; did you mean {near}?"),
            None => "no kind of provider".to_owned(),
        }),
    }
}

fn quirks<Q: FromStr<Err: Display>>(section: &mut Section<'_>) -> Vec<Q> {
    let names = section.texts("quirks");
    let quirks = names.iter().filter_map(|name| {
        let quirk = name
            .parse()
            .map_err(|error: Q::Err| format!("{name:?}: {error}"));
        section.keep("quirks", quirk)
    });
    quirks.collect()
}

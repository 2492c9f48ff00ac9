//! Tools of an operator's own: `[[tools.http]]` of the file.

use std::collections::BTreeSet;

use hango_domain::tool::{Idempotency, is_tool_name};
use hango_tools::HttpToolSettings;
use serde_json::{Value as Json, json};

use super::parse::{self, Parsed};
use super::problems::{Problems, unknown};
use super::section::Section;
use super::settings::Settings;
use super::values::Environment;

/// The tools of the section `[tools]`, in their order.
pub(super) fn read(
    mut section: toml::Table,
    settings: &Settings,
    environment: &Environment,
    problems: &mut Problems,
) -> Vec<HttpToolSettings> {
    let entries = section.remove("http");
    for key in section.keys() {
        problems.at(format_args!("tools.{key}"), unknown(key, ["http"]));
    }
    let entries: Vec<toml::Table> = match entries.map(toml::Value::try_into) {
        None => Vec::new(),
        Some(Ok(entries)) => entries,
        Some(Err(_)) => {
            problems.at("tools.http", "not a list of sections: write [[tools.http]]");
            Vec::new()
        }
    };
    let mut names = BTreeSet::new();
    let mut tools = Vec::new();
    for (position, keys) in entries.into_iter().enumerate() {
        let at = match keys.get("name").and_then(toml::Value::as_str) {
            Some(name) => format!("tools.http.{name}"),
            None => format!("tools.http[{position}]"),
        };
        let mut section = Section::new(at, keys, problems);
        let tool = tool(&mut section, settings, environment);
        if let Some(tool) = tool {
            if !names.insert(tool.name.clone()) {
                section.wrong("name", "there are two tools of that name");
            }
            tools.push(tool);
        }
        section.end();
    }
    tools
}

fn tool(
    section: &mut Section<'_>,
    settings: &Settings,
    environment: &Environment,
) -> Option<HttpToolSettings> {
    let name = section.required("name", name);
    let description = section.required("description", parse::text);
    let url = section.required("url", parse::http_url);
    let idempotency = section.required("idempotency", idempotency);
    let timeout = section.optional("timeout", parse::span);
    let headers = section.headers("headers", environment);
    let mut parameters = section.json("parameters");
    let kind = parameters.entry("type").or_insert_with(|| json!("object"));
    if *kind != json!("object") {
        section.wrong("parameters", "its type is not object");
    }
    Some(HttpToolSettings {
        name: name?,
        description: description?,
        url: url?,
        idempotency: idempotency?,
        timeout: timeout.unwrap_or(settings.tool_timeout),
        headers,
        parameters: Json::Object(parameters),
        max_output_bytes: settings.tool_output_max_bytes,
    })
}

fn name(text: &str) -> Parsed<String> {
    is_tool_name(text)
        .then(|| text.to_owned())
        .ok_or_else(|| "not 1 to 64 letters, digits, - or _".to_owned())
}

fn idempotency(text: &str) -> Parsed<Idempotency> {
    match text {
        "safe" => Ok(Idempotency::Safe),
        "keyed" => Ok(Idempotency::Keyed),
        "unsafe" => Ok(Idempotency::Unsafe),
        _ => Err("neither safe, keyed nor unsafe".to_owned()),
    }
}

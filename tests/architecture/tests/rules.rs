//! The rules that `docs/CONTRIBUTING.md` states, held.

use std::collections::BTreeSet;
use std::fs;

use hango_architecture::{members, reach, top, uses};

/// Which members a member may use. Whoever is not in the table may not exist.
const MAY_USE: &[(&str, &[&str])] = &[
    ("hango-domain", &[]),
    ("hango-ports", &["hango-domain"]),
    ("hango-application", &["hango-domain", "hango-ports"]),
    (
        "hango-http",
        &["hango-domain", "hango-ports", "hango-application"],
    ),
    (
        "hango-anthropic",
        &["hango-domain", "hango-ports", "hango-provider-http"],
    ),
    ("hango-memory", &["hango-domain", "hango-ports"]),
    (
        "hango-openai",
        &["hango-domain", "hango-ports", "hango-provider-http"],
    ),
    ("hango-otel", &["hango-domain", "hango-ports"]),
    ("hango-postgres", &["hango-domain", "hango-ports"]),
    // No adapter by itself: what those share that ask a model over HTTP.
    ("hango-provider-http", &["hango-domain", "hango-ports"]),
    ("hango-scripted", &["hango-domain", "hango-ports"]),
    ("hango-sqlite", &["hango-domain", "hango-ports"]),
    ("hango-tools", &["hango-domain", "hango-ports"]),
    (
        "hango",
        &[
            "hango-domain",
            "hango-ports",
            "hango-application",
            "hango-anthropic",
            "hango-http",
            "hango-memory",
            "hango-openai",
            "hango-otel",
            "hango-postgres",
            "hango-scripted",
            "hango-sqlite",
            "hango-tools",
        ],
    ),
    ("hango-conformance", &["hango-domain", "hango-ports"]),
    ("hango-architecture", &[]),
    ("hango-bench", &["hango-test-database"]),
    // A team's, who have the program and what they need for what they bring.
    (
        "hango-own-server",
        &["hango", "hango-domain", "hango-ports", "hango-scripted"],
    ),
    ("hango-test-database", &[]),
    (
        "hango-simulation",
        &[
            "hango-domain",
            "hango-ports",
            "hango-application",
            "hango-memory",
        ],
    ),
];

/// Those who talk to the outside world.
const ADAPTERS: &[&str] = &[
    "hango-anthropic",
    "hango-http",
    "hango-memory",
    "hango-openai",
    "hango-otel",
    "hango-postgres",
    "hango-scripted",
    "hango-sqlite",
    "hango-tools",
];

/// Libraries that few members have to themselves.
const ONLY_IN: &[(&str, &[&str])] = &[
    (
        "sqlx",
        &[
            "hango-sqlite",
            "hango-postgres",
            "hango-test-database",
            "hango-bench",
        ],
    ),
    ("axum", &["hango-http", "hango-bench"]),
];

/// What the pure crates must not reach, however indirectly.
const NO_IO: &[&str] = &[
    "tokio",
    "sqlx",
    "axum",
    "hyper",
    "reqwest",
    "opentelemetry",
    "mio",
];

/// What the application must not reach: it has a runtime, and no way out.
const NO_WAY_OUT: &[&str] = &["sqlx", "axum", "hyper", "reqwest", "opentelemetry"];

/// The top level of the repository, whatever begins with a dot aside.
const TOP: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "adapters",
    "application",
    "bootstrap",
    "docs",
    "domain",
    "migrations",
    "ports",
    "tests",
];

/// What building and running leaves there; git ignores it.
const LEFT_BEHIND: &[&str] = &["target", "hango-data"];

#[test]
fn a_member_uses_only_whom_it_may() {
    for package in members().workspace_packages() {
        let name = package.name.as_str();
        let Some((_, allowed)) = MAY_USE.iter().find(|(member, _)| *member == name) else {
            panic!("{name} is not in the table of who may use whom");
        };
        let forbidden: Vec<_> = uses(package)
            .into_iter()
            .filter(|used| MAY_USE.iter().any(|(member, _)| member == used))
            .filter(|used| !allowed.contains(used))
            .collect();
        assert!(forbidden.is_empty(), "{name} uses {forbidden:?}");
    }
}

#[test]
fn only_the_binary_names_two_adapters() {
    for package in members().workspace_packages() {
        let named = uses(package).into_iter();
        let adapters: Vec<_> = named.filter(|used| ADAPTERS.contains(used)).collect();
        assert!(
            package.name.as_str() == "hango" || adapters.len() < 2,
            "{} names {adapters:?}",
            package.name
        );
    }
}

#[test]
fn a_driver_stays_in_its_adapter() {
    for package in members().workspace_packages() {
        for (library, adapters) in ONLY_IN {
            assert!(
                adapters.contains(&package.name.as_str()) || !uses(package).contains(library),
                "{} names {library}",
                package.name
            );
        }
    }
}

#[test]
fn domain_and_ports_cannot_reach_io() {
    for member in ["hango-domain", "hango-ports"] {
        cannot_reach(member, NO_IO);
    }
}

#[test]
fn the_application_reaches_the_outside_through_ports_only() {
    cannot_reach("hango-application", NO_WAY_OUT);
    cannot_reach("hango-application", ADAPTERS);
}

#[test]
fn every_member_takes_the_workspaces_lints() {
    for package in members().workspace_packages() {
        let manifest = fs::read_to_string(&package.manifest_path).expect("a member has a manifest");
        assert!(
            manifest.contains("[lints]\nworkspace = true\n"),
            "{} does not",
            package.name
        );
    }
}

#[test]
fn the_top_level_is_the_one_that_was_agreed() {
    let found: BTreeSet<String> = fs::read_dir(top())
        .expect("the repository can be read")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && !LEFT_BEHIND.contains(&name.as_str()))
        .collect();
    let agreed: BTreeSet<String> = TOP.iter().map(|name| (*name).to_owned()).collect();

    assert_eq!(found, agreed);
}

fn cannot_reach(member: &str, forbidden: &[&str]) {
    let reached = reach(member);
    assert!(reached.contains(member), "cargo knows no {member}");
    let forbidden: Vec<_> = forbidden
        .iter()
        .filter(|name| reached.contains(**name))
        .collect();
    assert!(forbidden.is_empty(), "{member} reaches {forbidden:?}");
}

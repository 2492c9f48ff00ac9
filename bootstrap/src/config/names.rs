//! Which names an operator may use: a misspelt one must not be silently ignored.

use super::problems::{Problems, unknown};
use super::values::{Environment, Setting};

/// Names that are not settings: where the file is, what the client and the tests read.
const NOT_SETTINGS: [&str; 5] = [
    "HANGO_CONFIG",
    "HANGO_URL",
    "HANGO_API_KEY",
    "HANGO_PORT",
    "HANGO_PG_BINDIR",
];

/// Families of such names; the first two are what a cluster injects for a service named hango.
const NOT_SETTINGS_FROM: [&str; 3] = ["HANGO_PORT_", "HANGO_SERVICE_", "HANGO_TEST_"];

/// Makes a process fail at a named point, in builds for tests.
const FAILPOINT: &str = "HANGO_FAILPOINT";

/// Notes every variable of hango's family that nobody knows; `known` are the settings' names.
/// `test_build` says whether this build may be made to fail.
pub(super) fn check_environment(
    environment: &Environment,
    known: &[&str],
    test_build: bool,
    problems: &mut Problems,
) {
    for name in environment.keys() {
        if !name.starts_with("HANGO_") || exempt(name) || known.contains(&name.as_str()) {
            continue;
        }
        if name != FAILPOINT {
            let ours = known.iter().filter(|known| known.starts_with("HANGO_"));
            problems.at(name, unknown(name, ours.copied()));
        } else if !test_build {
            problems.at(
                name,
                "fails on purpose, which only builds for tests can; leave it out",
            );
        }
    }
}

/// Where the process is to fail on purpose.
#[cfg(debug_assertions)]
pub(super) fn failpoints(
    environment: &Environment,
    problems: &mut Problems,
) -> crate::failpoints::Failpoints {
    let text = environment.get(FAILPOINT).map_or("", String::as_str);
    let read = crate::failpoints::Failpoints::parse(text);
    problems.keep(FAILPOINT, read).unwrap_or_default()
}

/// Notes every key that is left in the file when all that is known was taken out.
pub(super) fn check_file<'a>(
    left: &toml::Table,
    settings: impl Iterator<Item = &'a Setting>,
    problems: &mut Problems,
) {
    let mut known: Vec<String> = settings.map(Setting::key).collect();
    known.extend(["providers".to_owned(), "tools".to_owned()]);
    for key in left.keys() {
        problems.at(key, unknown(key, known.iter().map(String::as_str)));
    }
}

fn exempt(name: &str) -> bool {
    NOT_SETTINGS.contains(&name)
        || NOT_SETTINGS_FROM
            .iter()
            .any(|family| name.starts_with(family))
}

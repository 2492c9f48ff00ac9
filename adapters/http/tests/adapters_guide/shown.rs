//! What the guide shows is what is compiled here, and what it names is there.

use std::fs;

#[test]
fn the_guide_shows_these_files() {
    let guide = include_str!("../../../../docs/adapters.md");
    for (file, regions) in [
        (
            include_str!("gateway.rs"),
            &["provider", "provider-tests"][..],
        ),
        (include_str!("orders.rs"), &["tool", "tool-tests"]),
        (include_str!("counts.rs"), &["sink", "sink-tests"]),
        (include_str!("server.rs"), &["server"]),
        (include_str!("whole.rs"), &["whole"]),
        (
            include_str!("../../../../tests/own_server/src/main.rs"),
            &["own"],
        ),
    ] {
        for region in regions {
            let shown = between(guide, &format!("<!-- {region} -->\n```rust\n"), "```\n");
            let begin = format!("// region: {region}\n");
            let written = between(file, &begin, &format!("// endregion: {region}\n"));
            assert_eq!(shown, as_shown(written), "the region {region}");
        }
    }
}

#[test]
fn the_guide_registers_a_store_as_the_memory_stores_tests_do() {
    let guide = include_str!("../../../../docs/adapters.md");
    let file = include_str!("../../../memory/tests/conformance.rs");

    let shown = between(guide, "<!-- store-tests -->\n```rust\n", "```\n");

    let (_, registered) = file.split_once("\n\n").expect("a header");
    assert_eq!(shown, registered);
}

#[test]
fn the_places_that_the_guide_names_are_there() {
    let places = |file: &str| {
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    for (file, names) in [
        ("bootstrap/src/app.rs", &["fn build_provider("][..]),
        ("bootstrap/src/config/providers.rs", &["enum ProviderKind"]),
        ("bootstrap/src/store.rs", &["enum Store "]),
        ("bootstrap/src/config/database.rs", &["postgres"]),
        ("tests/architecture/tests/rules.rs", &["MAY_USE"]),
        ("adapters/memory/src/session_row.rs", &["fn change("]),
        ("adapters/sqlite/src/runs/change.rs", &["fn make("]),
    ] {
        let text = places(file);
        for name in names {
            assert!(text.contains(name), "{file} has no {name:?}");
        }
    }
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, behind) = text.split_once(begin).expect("its beginning");
    let (inside, _) = behind.split_once(end).expect("its end");
    inside
}

/// Less by what its first line is set in, and as a reader's own crate would have it: what is `pub` for
/// the other files of this test is private.
fn as_shown(region: &str) -> String {
    let indent = region.len() - region.trim_start_matches(' ').len();
    let indent = " ".repeat(indent);
    let lines = region.lines().fold(String::new(), |text, line| {
        text + line.strip_prefix(&indent).unwrap_or(line).trim_end() + "\n"
    });
    lines.trim_end().replace("pub(crate) ", "") + "\n"
}

//! The policy for URLs against texts that nobody thought of.

mod property;

use proptest::prelude::*;

/// What URLs, and texts that pass for one somewhere, are made of.
const PIECES: &[&str] = &[
    "http://",
    "https://",
    "HTTP:",
    "http:",
    "ftp://",
    "file://",
    "//",
    "/",
    "\\",
    "@",
    ":",
    "::",
    "?",
    "#",
    "%",
    "%2f",
    "%2e",
    "%00",
    "%0d%0a",
    "%40",
    "[",
    "]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2606:4700::1111]",
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0177.0.0.1",
    "2130706433",
    "8.8.8.8",
    "134744072",
    "169.254.169.254",
    "good.example",
    "GOOD.example",
    "ｇｏｏｄ.example",
    "good。example",
    "a.wild.example",
    ".wild.example",
    "evil.example",
    "localhost",
    ".",
    "..",
    "-",
    "xn--",
    "\u{ad}",
    "\u{200d}",
    "\u{2024}",
    "①②⑦.⓪.⓪.①",
    "user",
    "80",
    "443",
    "8080",
    ":080",
    ":65536",
    " ",
    "\t",
    "\n",
    "\0",
    "é",
    "😀",
    "a",
    "../",
    "./",
    ";",
    "&",
    "=",
    "|",
    "^",
    "`",
    "{",
    "}",
    "\"",
    "<",
    ">",
    "'",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn whatever_is_put_together_out_of_pieces_of_urls_keeps_to_the_policy(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..10),
    ) {
        property::holds(&pieces.concat());
    }

    #[test]
    fn whatever_stands_around_a_listed_host_keeps_to_the_policy(
        before in prop::sample::select(PIECES),
        behind in prop::collection::vec(prop::sample::select(PIECES), 0..6),
    ) {
        for host in ["good.example", "a.wild.example", "8.8.8.8", "[2606:4700::1111]"] {
            property::holds(&format!("http://{before}{host}{}", behind.concat()));
            property::holds(&format!("http://{host}{before}{}", behind.concat()));
        }
    }

    #[test]
    fn any_text_keeps_to_the_policy(text in any::<String>(), path in "\\PC{0,40}") {
        property::holds(&text);
        property::holds(&format!("http://{text}"));
        property::holds(&format!("https://good.example/{path}"));
        property::holds(&format!("https://good.example{path}"));
    }
}

#[test]
fn a_long_path_whose_escapes_are_longer_keeps_to_the_policy() {
    property::holds(&format!("http://good.example/{}", "é".repeat(1000)));
}

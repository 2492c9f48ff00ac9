//! Rows that are about the URL alone. `good.example` is listed, with the ports of the web; no network is
//! opened.

use hango_domain::tool::ToolResult;
use hango_tools::HttpFetch;

use super::support::{Names, fetch, outbound, policy};

/// What becomes of a URL.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// A model is told this.
    Refused(&'static str),
    /// `good.example` is asked for this.
    Asked(&'static str),
}

use Outcome::{Asked, Refused};

/// URLs of which the same becomes.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) urls: &'static [&'static str],
}

const INVALID: Outcome = Refused("invalid_url");
const HOST: Outcome = Refused("blocked_host");
const ADDRESS: Outcome = Refused("blocked_address");

macro_rules! rows {
    ($($name:ident: $outcome:expr, [$($url:expr),+ $(,)?];)+) => {
        /// All of them.
        pub(crate) const ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            outcome: $outcome,
            urls: &[$($url),+],
        }),+];

        $(
            #[tokio::test]
            async fn $name() {
                check(&[$($url),+], $outcome).await;
            }
        )+
    };
}

async fn check(urls: &[&str], outcome: Outcome) {
    for url in urls {
        match outcome {
            Refused(word) => {
                let names = Names::all(&["93.184.215.14"]);
                let tool = HttpFetch::new(outbound(&["good.example"], &[], &names));

                let result = fetch(&tool, url).await;

                assert_eq!(result, ToolResult::error(word), "{url:?}");
                assert_eq!(names.asked(), [""; 0], "{url:?}");
            }
            Asked(path) => {
                let target = policy(&["good.example"], &[]).admit(url);

                let target = target.unwrap_or_else(|failure| panic!("{url:?}: {failure}"));
                let asked = (target.authority(), target.port(), target.asked_for());
                assert_eq!(asked, ("good.example".to_owned(), 80, path), "{url:?}");
            }
        }
    }
}

rows! {
    s01_a_literal_of_the_loopback: ADDRESS, ["http://127.0.0.1/", "https://127.0.0.1/", "http://127.255.255.255:9/"];
    s02_a_decimal_number: ADDRESS, ["http://2130706433/"];
    s03_hexadecimal_numbers: ADDRESS, ["http://0x7f000001/", "http://0x7f.1/", "http://127.0.0.0x1/"];
    s04_octal_numbers: ADDRESS, ["http://0177.0.0.1/", "http://017700000001/", "http://00000177.1/"];
    s04_an_octal_number_that_others_read_as_decimal_is_the_public_address: HOST, ["http://010.0.0.1/"];
    s05_short_forms: ADDRESS, ["http://127.1/", "http://127.0.1/"];
    s06_nothing_is_this_machine: ADDRESS, ["http://0/", "http://0x/", "http://0.0.0.0/"];
    s07_a_private_address_as_a_number: ADDRESS, ["http://3232235777/"];
    s08_numbers_that_are_no_address: INVALID, ["http://4294967296/", "http://256.0.0.1/", "http://1.2.3.4.5/"];
    s09_an_address_with_a_dot: ADDRESS, ["http://127.0.0.1./"];
    s09_an_address_with_two_dots_is_a_name: HOST, ["http://127.0.0.1../"];
    s10_private_addresses_to_their_edges: ADDRESS, [
        "http://10.0.0.0/", "http://10.255.255.255/", "http://172.16.0.0/", "http://172.31.255.255/",
        "http://192.168.0.0/", "http://192.168.255.255/",
    ];
    s10_what_is_beyond_the_edges_is_only_not_listed: HOST, ["http://172.15.255.255/", "http://172.32.0.0/"];
    s11_metadata_of_clouds: ADDRESS, ["http://169.254.169.254/latest/meta-data/", "http://169.254.170.2/v2/credentials/"];
    s12_shared_addresses: ADDRESS, ["http://100.64.0.1/", "http://100.127.255.255/", "http://100.100.100.200/"];
    s13_a_clouds_host_agent: ADDRESS, ["http://168.63.129.16/machine"];
    s14_addresses_with_a_purpose: ADDRESS, [
        "http://192.0.0.1/", "http://192.0.2.1/", "http://198.18.0.1/", "http://198.19.255.255/",
        "http://198.51.100.1/", "http://203.0.113.1/", "http://192.88.99.1/",
    ];
    s15_multicast_and_what_is_reserved: ADDRESS, ["http://224.0.0.1/", "http://239.255.255.255/", "http://240.0.0.1/", "http://255.255.255.255/"];
    s16_the_loopback_of_ipv6: ADDRESS, ["http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/"];
    s17_mapped_addresses: ADDRESS, ["http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:ffff:a9fe:a9fe]/"];
    s17_compatible_addresses: ADDRESS, ["http://[::127.0.0.1]/", "http://[::7f00:1]/"];
    s19_translated_addresses: ADDRESS, ["http://[::ffff:0:127.0.0.1]/"];
    s20_nat64_that_nobody_has_declared: ADDRESS, ["http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b::808:808]/", "http://[64:ff9b:1::7f00:1]/"];
    s22_six_to_four: ADDRESS, ["http://[2002:7f00:1::]/", "http://[2002:808:808::]/"];
    s23_teredo: ADDRESS, ["http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "http://[2001::1]/"];
    s22_isatap: ADDRESS, ["http://[2a00:1450::5efe:7f00:1]/", "http://[2a00:1450::200:5efe:a00:1]/"];
    s25_what_is_special_of_ipv6: ADDRESS, [
        "http://[fc00::1]/", "http://[fdff::1]/", "http://[fe80::1]/", "http://[fec0::1]/", "http://[ff02::1]/",
        "http://[100::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/", "http://[5f00::1]/", "http://[fd00:ec2::254]/",
    ];
    s26_zones: INVALID, ["http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/"];
    s27_digits_of_other_shapes: ADDRESS, ["http://①②⑦.⓪.⓪.①/", "http://１２７.０.０.１/"];
    s28_digits_as_escapes: ADDRESS, ["http://%31%32%37.0.0.1/"];
    s29_letters_of_other_shapes: HOST, ["http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/"];
    s30_names_of_this_machine: HOST, ["http://localhost/", "http://LOCALHOST./", "http://foo.localhost/", "http://localhost.localdomain/", "http://ip6-localhost/"];
    s31_names_that_hold_an_address: HOST, ["http://127.0.0.1.nip.io/", "http://7f000001.nip.io/"];
    s32_a_listed_user_at_an_address: ADDRESS, ["http://good.example@127.0.0.1/"];
    s33_a_user_at_a_listed_host: INVALID, ["http://127.0.0.1@good.example/", "http://user:pw@good.example/", "http://user@good.example/", "http://:pw@good.example/"];
    s34_a_user_with_an_empty_password: INVALID, ["http://good.example:@evil.example/"];
    s35_a_backslash_begins_the_path: Asked("/@127.0.0.1/"), ["http://good.example\\@127.0.0.1/"];
    s35_a_backslash_ends_the_host: Asked("/.evil.example/"), ["http://good.example\\.evil.example/"];
    s36_a_fragment_is_not_sent: Asked("/"), ["http://good.example#@evil.example/"];
    s36_a_query_is_no_host: Asked("/?@evil.example/"), ["http://good.example?@evil.example/"];
    s37_many_at_signs: INVALID, ["http://1.1.1.1 &@2.2.2.2# @3.3.3.3/"];
    s38_characters_that_no_host_has: INVALID, ["http://good.example%40127.0.0.1/", "http://good.example%00.evil.example/", "http://good.example／evil.example/", "http://good example/", "http://good\u{2024}example/"];
    s39_control_characters: INVALID, ["\thttp://good.example/", "http://go\tod.exa\nmple/", "http://good.example/\u{7f}", "http://good.example/\u{85}", "http://good.example/a\0b"];
    s40_slashes_of_any_number: Asked("/"), ["http:good.example/", "http:///good.example/", "http:/\\good.example/", "http:////good.example/"];
    s41_what_is_no_whole_url: INVALID, ["//good.example/", "", "good.example", "/", "http://", "http:///"];
    s42_upper_case: Asked("/"), ["HTTP://GOOD.EXAMPLE/"];
    s43_a_dot_at_the_end: Asked("/"), ["http://good.example./"];
    s44_names_that_only_look_like_it: HOST, ["http://evilgood.example/", "http://good.example.evil.example/", "http://sub.good.example/"];
    s45_other_ways_to_write_it: Asked("/"), ["http://ｇｏｏｄ.example/", "http://good。example/", "http://go\u{ad}od.example/", "http://%67ood.example/"];
    s46_letters_of_another_alphabet: HOST, ["http://g\u{43e}\u{43e}d.example/"];
    s47_punycode_of_nothing: INVALID, ["http://xn--good-.example/"];
    s48_a_name_that_was_once_another: HOST, ["http://goo\u{df}d.example/"];
    s49_ports_that_are_not_listed: HOST, ["http://good.example:0/", "http://good.example:22/", "http://good.example:6379/", "http://good.example:8080/"];
    s49_ports_that_are_none: INVALID, ["http://good.example:65536/", "http://good.example:80:81/", "http://good.example:-80/", "http://good.example:x/"];
    s49_a_port_with_a_nought: Asked("/"), ["http://good.example:080/", "http://good.example:/", "http://good.example:80/"];
    s50_other_schemes: INVALID, [
        "ftp://good.example/", "file:///etc/passwd", "file://good.example/", "gopher://good.example/", "data:text/plain,x",
        "javascript:alert(1)", "ws://good.example/", "wss://good.example/", "dict://good.example/", "jar:http://good.example!/",
        "blob:http://good.example/", "view-source:http://good.example/", "ftp://127.0.0.1/",
    ];
    s63_a_single_label: HOST, ["http://tickets/", "http://good/", "http://example/"];
    s66_escaped_line_breaks_stay_escaped: Asked("/%0d%0aHost:%20evil.example?%0d%0a"), ["http://good.example/%0d%0aHost:%20evil.example?%0d%0a"];
    s66_line_breaks: INVALID, ["http://good.example/\r\nHost: evil.example", "http://good.example%0d%0a/", "http://good.example/ HTTP/1.1\r\n"];
}

#[tokio::test]
async fn s41_a_long_url() {
    let url = |length: usize| format!("http://good.example/{}", "a".repeat(length - 20));
    let policy = policy(&["good.example"], &[]);

    assert!(policy.admit(&url(2048)).is_ok());
    check(&[&url(2049), &url(10 * 1024)], INVALID).await;
}

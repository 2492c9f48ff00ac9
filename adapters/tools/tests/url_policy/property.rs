//! What must hold of any text that is taken for a URL. The fuzz target `url_policy` checks the same.

use hango_tools::outbound::{Target, UrlPolicy, shown};
use url::Host;

/// Panics if the policy admits what it must not, or if what would be sent can be read in two ways.
pub(crate) fn holds(text: &str) {
    let shown = shown(text);
    assert!(
        !shown.contains(['?', '#']),
        "{text:?} is shown as {shown:?}"
    );
    let policy = policy();
    let Ok(target) = policy.admit(text) else {
        return;
    };
    assert!(
        text.len() <= 2048 && !text.contains(char::is_control),
        "{text:?}"
    );
    assert!(is_listed(&target), "{text:?} leads to {target:?}");
    let (authority, asked) = (target.authority(), target.asked_for());
    assert!(asked.starts_with('/'), "{text:?} asks for {asked:?}");
    let sent = format!("{authority}{asked}");
    assert!(
        sent.bytes().all(|byte| byte.is_ascii_graphic()),
        "{text:?} sends {sent:?}"
    );
    let scheme = if target.is_secure() { "https" } else { "http" };
    let again = format!("{scheme}://{sent}");
    // Escapes may have made it longer than a URL may be.
    if again.len() <= 2048 {
        let again = policy.admit(&again).expect("what is sent is admitted");
        assert_eq!(again.host(), target.host(), "{text:?}");
        assert_eq!(again.port(), target.port(), "{text:?}");
        assert_eq!(again.asked_for(), asked, "{text:?}");
    }
}

fn policy() -> UrlPolicy {
    let hosts = [
        "good.example",
        "good.example:8080",
        "*.wild.example",
        "8.8.8.8",
        "[2606:4700::1111]",
        // Listed, and not public.
        "127.0.0.1",
        "[::1]",
        "169.254.169.254",
    ];
    let hosts = hosts.map(|host| host.parse().expect("a host"));
    UrlPolicy::new(hosts.into(), Vec::new())
}

fn is_listed(target: &Target) -> bool {
    let port = match target.port() {
        80 | 443 => true,
        8080 => *target.host() == Host::Domain("good.example".to_owned()),
        _ => false,
    };
    let host = match target.host() {
        Host::Domain(name) => {
            let below = name.strip_suffix(".wild.example");
            name == "good.example" || below.is_some_and(|it| !it.is_empty() && !it.ends_with('.'))
        }
        Host::Ipv4(address) => address.octets() == [8, 8, 8, 8],
        Host::Ipv6(address) => address.segments() == [0x2606, 0x4700, 0, 0, 0, 0, 0, 0x1111],
    };
    port && host
}

//! Which hosts an operator has listed.

use std::str::FromStr;

use thiserror::Error;
use url::Host;

/// The ports that an entry opens which names none.
const PORTS: [u16; 2] = [80, 443];

/// A host that may be reached: `good.example`, `*.good.example`, either with `:port`; an address only as
/// itself.
///
/// It is normalized as URLs are: lower case, IDNA, without a dot at the end. An entry without a port opens
/// 80 and 443, one with a port that one alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AllowedHost {
    pattern: Pattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Pattern {
    /// This host.
    Exactly(Host),
    /// Every host whose name ends so; it begins with a dot.
    Under(String),
}

/// Why a text is no host that can be listed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum AllowedHostError {
    /// It would match names that anyone can have.
    #[error("too wide: it would open hosts of anyone")]
    TooWide,
    /// What stands behind the colon is no port.
    #[error("not a host: its port is not a whole number from 1 to 65535")]
    Port,
    /// Anything else.
    #[error("not a host such as good.example, *.good.example or good.example:8443")]
    Malformed,
}

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = match text.rsplit_once(':') {
            // The colons within an address of IPv6 are no port's.
            Some((host, port)) if !text.ends_with(']') => (host, Some(self::port(port)?)),
            Some(_) | None => (text, None),
        };
        let pattern = match host.strip_prefix("*.") {
            None if host.contains('*') => return Err(AllowedHostError::TooWide),
            None => Pattern::Exactly(self::host(host)?),
            Some(parent) => match self::host(parent)? {
                Host::Domain(parent) if parent.contains('.') && !parent.contains('*') => {
                    Pattern::Under(format!(".{parent}"))
                }
                Host::Domain(_) => return Err(AllowedHostError::TooWide),
                Host::Ipv4(_) | Host::Ipv6(_) => return Err(AllowedHostError::Malformed),
            },
        };
        Ok(Self { pattern, port })
    }
}

fn port(text: &str) -> Result<u16, AllowedHostError> {
    match text.parse() {
        Ok(0) | Err(_) => Err(AllowedHostError::Port),
        Ok(port) => Ok(port),
    }
}

fn host(text: &str) -> Result<Host, AllowedHostError> {
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(AllowedHostError::Malformed);
    }
    let host = Host::parse(text).map_err(|_| AllowedHostError::Malformed)?;
    normalized(host).ok_or(AllowedHostError::Malformed)
}

/// A host without the dot at its end; `None` if a part of its name is empty.
pub(super) fn normalized(host: Host) -> Option<Host> {
    let Host::Domain(name) = host else {
        return Some(host);
    };
    let name = name.strip_suffix('.').unwrap_or(&name);
    let whole = !name.split('.').any(str::is_empty);
    whole.then(|| Host::Domain(name.to_owned()))
}

impl AllowedHost {
    /// Whether it opens that port of a normalized host.
    pub(super) fn opens(&self, host: &Host, port: u16) -> bool {
        let matches = match (&self.pattern, host) {
            (Pattern::Exactly(listed), host) => listed == host,
            (Pattern::Under(suffix), Host::Domain(name)) => name
                .strip_suffix(suffix.as_str())
                .is_some_and(|below| !below.is_empty()),
            (Pattern::Under(_), Host::Ipv4(_) | Host::Ipv6(_)) => false,
        };
        matches && self.port.map_or(PORTS.contains(&port), |open| open == port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opens(entry: &str, host: &str, port: u16) -> bool {
        let entry: AllowedHost = entry.parse().expect("a host");
        let host = Host::parse(host).expect("a host");
        entry.opens(&normalized(host).expect("a whole name"), port)
    }

    #[test]
    fn an_entry_opens_its_host_and_no_other() {
        assert!(opens("good.example", "good.example", 80));
        assert!(opens("GOOD.Example.", "good.example.", 443));
        assert!(!opens("good.example", "www.good.example", 80));
        assert!(!opens("good.example", "evilgood.example", 80));
        assert!(!opens("good.example", "good.example.evil.example", 80));
        assert!(opens("tickets", "tickets", 80));
    }

    #[test]
    fn a_wildcard_opens_what_is_below_it() {
        assert!(opens("*.good.example", "www.good.example", 80));
        assert!(opens("*.good.example", "a.b.good.example", 80));
        assert!(!opens("*.good.example", "good.example", 80));
        assert!(!opens("*.good.example", "evilgood.example", 80));
    }

    #[test]
    fn an_entry_opens_the_ports_of_the_web_or_the_one_that_it_names() {
        assert!(!opens("good.example", "good.example", 8443));
        assert!(opens("good.example:8443", "good.example", 8443));
        assert!(!opens("good.example:8443", "good.example", 443));
        assert!(opens("*.good.example:8443", "www.good.example", 8443));
    }

    #[test]
    fn an_address_is_opened_as_itself_however_it_is_written() {
        assert!(opens("127.0.0.1:8080", "127.0.0.1", 8080));
        assert!(opens("127.1", "127.0.0.1", 80));
        assert!(opens("[::1]:8080", "[0:0:0:0:0:0:0:1]", 8080));
        assert!(opens("[::1]", "[::1]", 80));
        assert!(!opens("127.0.0.1", "127.0.0.2", 80));
    }

    #[test]
    fn names_are_listed_as_the_network_knows_them() {
        assert!(opens("faß.example", "xn--fa-hia.example", 80));
        assert!(!opens("fass.example", "faß.example", 80));
    }

    #[test]
    fn what_would_open_more_than_a_host_is_refused() {
        use AllowedHostError::{Malformed, Port, TooWide};
        for (text, error) in [
            ("*", TooWide),
            ("*.com", TooWide),
            ("*.*.example", TooWide),
            ("a.*", TooWide),
            ("", Malformed),
            ("good.example:0", Port),
            ("good.example:http", Port),
            ("https://good.example", Port),
            ("good..example", Malformed),
            ("good example", Malformed),
            ("good.example/path", Malformed),
            ("*.10.0.0.1", Malformed),
            ("::1", Malformed),
            ("user@good.example", Malformed),
        ] {
            assert_eq!(text.parse::<AllowedHost>(), Err(error), "{text}");
        }
    }
}

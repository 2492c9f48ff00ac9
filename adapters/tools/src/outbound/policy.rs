//! Which URLs may be fetched.
//!
//! A URL is parsed once, by the parser of the web, and from then on only what that parser found is looked at
//! and sent: never the text again. Where two readers of one text differ is where a check is got around.

use std::net::IpAddr;

use url::{Host, Position, Url};

use super::addresses::{Addresses, Network};
use super::failure::Failure;
use super::hosts::{AllowedHost, normalized};

/// How long a URL may be, in bytes.
const MAX_URL_BYTES: usize = 2048;

/// What an operator allows.
#[derive(Clone, Debug, Default)]
pub struct UrlPolicy {
    hosts: Vec<AllowedHost>,
    addresses: Addresses,
}

/// A URL that may be fetched, provided that every address of its host is permitted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    url: Url,
    host: Host,
    port: u16,
}

impl UrlPolicy {
    /// These hosts, at public addresses and those of these networks. No host: nothing.
    #[must_use]
    pub fn new(hosts: Vec<AllowedHost>, networks: Vec<Network>) -> Self {
        Self {
            hosts,
            addresses: Addresses::new(networks),
        }
    }

    /// What a URL names, if it may be fetched.
    ///
    /// # Errors
    ///
    /// [`Failure::InvalidUrl`], [`Failure::BlockedAddress`] or [`Failure::BlockedHost`]; an address that the
    /// URL names itself is judged before the list of hosts is.
    pub fn admit(&self, text: &str) -> Result<Target, Failure> {
        self.check(Url::parse(printable(text)?))
    }

    /// What a redirect leads to, if it may be followed: as [`admit`](Self::admit), and never from a
    /// connection that nobody can listen to, to one that anybody can.
    pub(super) fn follow(&self, from: &Target, location: &[u8]) -> Result<Target, Failure> {
        let text = std::str::from_utf8(location).map_err(|_| Failure::BadResponse)?;
        let target = self.check(from.url.join(printable(text)?))?;
        if from.is_secure() && !target.is_secure() {
            return Err(Failure::InvalidUrl);
        }
        Ok(target)
    }

    /// Whether that address may be connected to.
    #[must_use]
    pub fn permits(&self, address: IpAddr) -> bool {
        self.addresses.permit(address)
    }

    fn check(&self, parsed: Result<Url, url::ParseError>) -> Result<Target, Failure> {
        let url = parsed.map_err(|_| Failure::InvalidUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Failure::InvalidUrl);
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(Failure::InvalidUrl);
        };
        let host = host.to_owned();
        if literal(&host).is_some_and(|address| !self.permits(address)) {
            return Err(Failure::BlockedAddress);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::InvalidUrl);
        }
        let host = normalized(host).ok_or(Failure::BlockedHost)?;
        if !self.hosts.iter().any(|listed| listed.opens(&host, port)) {
            return Err(Failure::BlockedHost);
        }
        Ok(Target { url, host, port })
    }
}

/// A text that can be a URL. The parser would take control characters out, and others would not.
fn printable(text: &str) -> Result<&str, Failure> {
    if text.len() > MAX_URL_BYTES || text.contains(char::is_control) {
        return Err(Failure::InvalidUrl);
    }
    Ok(text)
}

/// The address, where a host is one. No resolver is ever asked for it.
fn literal(host: &Host) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some((*address).into()),
        Host::Ipv6(address) => Some((*address).into()),
    }
}

impl Target {
    /// The host, without the dot at its end.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection is encrypted, and its server proves who it is.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// What the request line asks for: path and query.
    #[must_use]
    pub fn asked_for(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }

    /// The header `host`.
    #[must_use]
    pub fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }
}

/// A URL for a log: as it was parsed, and without user and query, in which secrets ride.
#[must_use]
pub fn shown(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.has_host() => {
            let rest = &url[Position::BeforeHost..Position::AfterPath];
            format!("{}://{rest}", url.scheme())
        }
        Ok(url) => format!("{}:", url.scheme()),
        Err(_) => "no URL".to_owned(),
    }
}

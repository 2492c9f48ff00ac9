//! The one way out to URLs that a model chose.
//!
//! Whoever makes a server fetch what it likes would like to reach what the server can reach and he cannot:
//! the loopback, the neighbours, the cloud's metadata. So:
//!
//! * [`UrlPolicy`] parses a URL once and decides by what the parser found: scheme, host and port are listed,
//!   an address that the URL names itself is public.
//! * A name is resolved here ([`Resolver`]), once for each hop. Every address of it has to be public, or
//!   nothing is connected to.
//! * The connection goes to one of those addresses, and not to a name that somebody would resolve again. It
//!   has one request and one answer, and nothing that was there before is used for it: no pool, no proxy, no
//!   cookies, no credentials of any kind.
//! * A redirect is a new URL with a new decision, and there are few of them.
//! * Time has a bound that nothing is exempt from, and so has each part of an answer. A body is taken as it
//!   comes and is not decoded.
//! * Failures are few and fixed words ([`Failure`]): whoever asks learns nothing about the network behind.
//!
//! [`Outbound::fetch`] is the whole of it, and reads in that order.

mod addresses;
mod connection;
mod exchange;
mod failure;
mod hosts;
mod policy;
mod resolver;
mod tls;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use tokio::time::{Instant, timeout_at};
use url::Host;

pub use addresses::{Network, NetworkError};
pub use exchange::Fetched;
pub use failure::Failure;
pub use hosts::{AllowedHost, AllowedHostError};
pub use policy::{Target, UrlPolicy, shown};
pub use resolver::{Dns, Resolver};

use connection::Stream;
use exchange::Answer;
use tls::Tls;

/// How long a fetch may take, from the first question to a name server to the last byte.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// How often a fetch is sent elsewhere.
const MAX_REDIRECTS: usize = 3;

/// How many addresses a name may have: more are no server's.
const MAX_ADDRESSES: usize = 256;

/// Fetches what URLs name, as far as a policy allows.
pub struct Outbound {
    policy: UrlPolicy,
    resolver: Arc<dyn Resolver>,
    tls: Tls,
    time_limit: Duration,
}

impl Outbound {
    /// Fetches what `policy` allows, each within `time_limit` and within 5 s.
    #[must_use]
    pub fn new(policy: UrlPolicy, time_limit: Duration) -> Self {
        Self {
            policy,
            resolver: Arc::new(Dns::default()),
            tls: Tls::default(),
            time_limit: time_limit.min(TIME_LIMIT),
        }
    }

    /// Asks `resolver` for the addresses of names.
    #[must_use]
    pub fn resolving_by(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// Trusts servers by these certificates, and not by the machine's.
    #[must_use]
    pub fn trusting(self, roots: RootCertStore) -> Self {
        let tls = Tls::trusting(roots);
        Self { tls, ..self }
    }

    /// Gets what `url` names, and at most `max_bytes` of it. Dropping the future closes the connection.
    ///
    /// # Errors
    ///
    /// A [`Failure`]; whatever of the answer had come is not kept.
    pub async fn fetch(&self, url: &str, max_bytes: usize) -> Result<Fetched, Failure> {
        let deadline = Instant::now() + self.time_limit;
        let mut target = self.policy.admit(url)?;
        for _ in 0..=MAX_REDIRECTS {
            match self.ask(&target, max_bytes, deadline).await? {
                Answer::Whole(fetched) => return Ok(fetched),
                Answer::Elsewhere(location) => target = self.policy.follow(&target, &location)?,
            }
        }
        Err(Failure::TooManyRedirects)
    }

    async fn ask(
        &self,
        target: &Target,
        max_bytes: usize,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        // Whoever does not come to the door in time is not told from nobody.
        let connection = timeout_at(deadline, self.connect(target, deadline)).await;
        let connection = connection.unwrap_or(Err(Failure::Unreachable))?;
        let answer = timeout_at(deadline, exchange::get(connection, target, max_bytes)).await;
        answer.unwrap_or(Err(Failure::Timeout))
    }

    async fn connect(
        &self,
        target: &Target,
        deadline: Instant,
    ) -> Result<Box<dyn Stream>, Failure> {
        let addresses = self.addresses(target).await?;
        let stream = connection::connect(&addresses, target.port(), deadline)
            .await
            .map_err(|error| unreachable(&error))?;
        if !target.is_secure() {
            return Ok(Box::new(stream));
        }
        let stream = self.tls.encrypt(stream, target.host()).await;
        Ok(Box::new(stream.map_err(|error| unreachable(&error))?))
    }

    /// The addresses of a target, each of which may be connected to.
    async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, Failure> {
        let addresses = match target.host() {
            Host::Domain(name) => self
                .resolver
                .addresses(name)
                .await
                .map_err(|error| unreachable(&error))?,
            Host::Ipv4(address) => vec![(*address).into()],
            Host::Ipv6(address) => vec![(*address).into()],
        };
        if addresses.is_empty() || addresses.len() > MAX_ADDRESSES {
            return Err(Failure::Unreachable);
        }
        if !addresses
            .iter()
            .all(|address| self.policy.permits(*address))
        {
            return Err(Failure::BlockedAddress);
        }
        Ok(addresses)
    }
}

/// An operator may read in the log what no model is told.
fn unreachable(error: &io::Error) -> Failure {
    tracing::debug!(%error, "a host was not reached for a tool");
    Failure::Unreachable
}

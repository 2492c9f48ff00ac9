//! What addresses a name has.
//!
//! hango asks the name servers itself, for exactly the name that was checked: no search domains, no
//! `/etc/hosts`, no multicast. Nothing is kept, so that each hop is decided by what holds then, and whoever
//! stops waiting leaves no lookup behind.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf::read_system_conf;

/// Tells the addresses of a name.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// Every address of `name`, which is whole and has no dot at its end.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks the name servers that `/etc/resolv.conf` names at that moment.
#[derive(Default)]
pub struct Dns {
    /// Whom to ask instead.
    instead: Option<ResolverConfig>,
}

impl Dns {
    fn resolver(&self) -> io::Result<TokioResolver> {
        let (config, mut options) = match &self.instead {
            Some(config) => (config.clone(), ResolverOpts::default()),
            None => machine(),
        };
        options.use_hosts_file = ResolveHosts::Never;
        options.cache_size = 0;
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        builder
            .with_options(options)
            .build()
            .map_err(io::Error::other)
    }
}

#[async_trait]
impl Resolver for Dns {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let resolver = self.resolver()?;
        // The dot says that the name is whole.
        let name = Name::from_ascii(format!("{name}.")).map_err(io::Error::other)?;
        let (v4, v6) = tokio::join!(
            resolver.lookup(name.clone(), RecordType::A),
            resolver.lookup(name.clone(), RecordType::AAAA),
        );
        let found = match (v4, v6) {
            (Err(error), Err(_)) => return Err(io::Error::other(error)),
            (v4, v6) => v4.into_iter().chain(v6),
        };
        let records = found.flat_map(|lookup| lookup.answers().to_vec());
        Ok(records
            .filter_map(|record| match record.data {
                RData::A(address) => Some(IpAddr::V4(address.0)),
                RData::AAAA(address) => Some(IpAddr::V6(address.0)),
                // The names in between are not connected to.
                _ => None,
            })
            .collect())
    }
}

/// What the machine's file says; a machine without one has a name server of its own, as resolv.conf(5) says.
fn machine() -> (ResolverConfig, ResolverOpts) {
    read_system_conf().unwrap_or_else(|error| {
        tracing::warn!(%error, "/etc/resolv.conf names no server; the machine's own is asked");
        let own = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![own]);
        (config, ResolverOpts::default())
    })
}

#[cfg(test)]
mod tests;

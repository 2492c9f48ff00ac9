//! Encryption, and whom to trust: the machine's certificates. Nobody can be told to look away.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Host;

/// How servers prove who they are. The machine's certificates are read when the first one has to: a machine
/// that has none does without encrypted connections, and not without hango.
#[derive(Default)]
pub(super) struct Tls(OnceLock<Option<Arc<ClientConfig>>>);

impl Tls {
    /// Trusts these certificates and none of the machine's.
    pub(super) fn trusting(roots: RootCertStore) -> Self {
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = restrained(config.with_no_client_auth());
        Self(OnceLock::from(Some(Arc::new(config))))
    }

    /// Encrypts a connection to a server that proves to be `host`.
    pub(super) async fn encrypt(
        &self,
        stream: TcpStream,
        host: &Host,
    ) -> io::Result<TlsStream<TcpStream>> {
        let config = self.0.get_or_init(of_the_machine).clone();
        let config = config.ok_or_else(|| io::Error::other("no certificates to trust"))?;
        TlsConnector::from(config)
            .connect(server_name(host)?, stream)
            .await
    }
}

fn server_name(host: &Host) -> io::Result<ServerName<'static>> {
    let address = match host {
        Host::Domain(name) => return ServerName::try_from(name.clone()).map_err(io::Error::other),
        Host::Ipv4(address) => IpAddr::V4(*address),
        Host::Ipv6(address) => IpAddr::V6(*address),
    };
    Ok(ServerName::IpAddress(address.into()))
}

fn of_the_machine() -> Option<Arc<ClientConfig>> {
    match ClientConfig::builder().with_platform_verifier() {
        Ok(config) => Some(Arc::new(restrained(config.with_no_client_auth()))),
        Err(error) => {
            tracing::warn!(%error, "no encrypted connection can be made for tools");
            None
        }
    }
}

/// Speaks HTTP/1.1 alone, and lets nobody recognise a caller by an earlier connection.
fn restrained(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    config
}

//! Rows about encrypted connections: a server proves who it is, or there is no connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use hango_domain::tool::ToolResult;
use hango_tools::HttpFetch;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::support::{Names, fetch, outbound};

/// Somebody who says who is who.
struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let issuer = Issuer::new(params, key);
        Self {
            certificate,
            issuer,
        }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.certificate.der().clone())
            .expect("a certificate");
        roots
    }

    /// A certificate for `name`, good for some time around now or out of date.
    fn certifies(&self, name: &str, until: i32) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity::new(&certificate, &key)
    }
}

/// What a server shows of itself.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn new(certificate: &Certificate, key: &KeyPair) -> Self {
        Self {
            chain: vec![certificate.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        }
    }

    fn self_signed(name: &str) -> Self {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        Self::new(&params.self_signed(&key).expect("a certificate"), &key)
    }
}

/// An encrypted server, and what its clients said.
struct SecureServer {
    address: SocketAddr,
    log: Arc<Mutex<Vec<Heard>>>,
    accepting: JoinHandle<()>,
}

/// What a client said of whom it wants, which protocol was settled on, and its request's head.
#[derive(Clone, Debug, PartialEq)]
struct Heard {
    server_name: Option<String>,
    protocol: Option<Vec<u8>>,
    head: String,
}

impl SecureServer {
    async fn start(identity: Identity, answer: &'static str) -> Self {
        let config = ServerConfig::builder().with_no_client_auth();
        let mut config = config
            .with_single_cert(identity.chain, identity.key)
            .expect("a key of that certificate");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let log = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&log);
        let accepting = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("a connection");
                // Whoever does not trust this server goes away.
                drop(serve(&acceptor, socket, &heard, answer).await);
            }
        });
        Self {
            address,
            log,
            accepting,
        }
    }

    fn heard(&self) -> Vec<Heard> {
        let heard = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        heard.clone()
    }
}

impl Drop for SecureServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    acceptor: &TlsAcceptor,
    socket: TcpStream,
    log: &Mutex<Vec<Heard>>,
    answer: &str,
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(socket).await?;
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    let (_, session) = stream.get_ref();
    let heard = Heard {
        server_name: session.server_name().map(str::to_owned),
        protocol: session.alpn_protocol().map(<[u8]>::to_vec),
        head: String::from_utf8_lossy(&bytes).into_owned(),
    };
    log.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(heard);
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

const PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage";

/// What a model is told that fetches from a server with that identity, and what the server heard. `{port}`
/// stands for the server's port.
async fn fetched(
    roots: RootCertStore,
    identity: Identity,
    url: &str,
    answer: &'static str,
) -> (ToolResult, Vec<Heard>) {
    let server = SecureServer::start(identity, answer).await;
    let port = server.address.port();
    let hosts = ["good.example", "127.0.0.1"].map(|host| format!("{host}:{port}"));
    let hosts = hosts.each_ref().map(String::as_str);
    let names = Names::all(&["127.0.0.1"]);
    let outbound = outbound(&hosts, &["127.0.0.0/8"], &names);
    let tool = HttpFetch::new(outbound.trusting(roots));

    let result = fetch(&tool, &url.replace("{port}", &port.to_string())).await;

    (result, server.heard())
}

const URL: &str = "https://good.example:{port}/";

#[tokio::test]
async fn s75_a_server_that_proves_who_it_is_is_asked() {
    let authority = Authority::new();
    let identity = authority.certifies("good.example", 2200);

    let (result, heard) = fetched(authority.roots(), identity, URL, PAGE).await;

    assert_eq!(result, ToolResult::ok("HTTP/1.1 200 OK\n\npage"));
    assert_eq!(heard.len(), 1);
}

#[tokio::test]
async fn s75_a_server_that_does_not_is_told_nothing() {
    let authority = Authority::new();
    for (why, identity) in [
        ("self-signed", Identity::self_signed("good.example")),
        (
            "another's",
            Authority::new().certifies("good.example", 2200),
        ),
        ("of another name", authority.certifies("evil.example", 2200)),
        (
            "of a name below",
            authority.certifies("*.good.example", 2200),
        ),
        ("expired", authority.certifies("good.example", 2010)),
    ] {
        let (result, heard) = fetched(authority.roots(), identity, URL, PAGE).await;

        assert_eq!(result, ToolResult::error("unreachable"), "{why}");
        assert_eq!(heard, [], "{why}");
    }
}

#[tokio::test]
async fn s75_nobody_but_the_machines_own_authorities_is_trusted() {
    let server = SecureServer::start(Identity::self_signed("good.example"), PAGE).await;
    let host = format!("good.example:{}", server.address.port());
    let names = Names::all(&["127.0.0.1"]);
    let tool = HttpFetch::new(outbound(&[&host], &["127.0.0.0/8"], &names));

    let result = fetch(&tool, &format!("https://{host}/")).await;

    assert_eq!(result, ToolResult::error("unreachable"));
    assert_eq!(server.heard(), []);
}

#[tokio::test]
async fn s75_an_address_is_proven_as_an_address() {
    let authority = Authority::new();
    let url = "https://127.0.0.1:{port}/";
    let address = Ipv4Addr::LOCALHOST.to_string();

    let proven = authority.certifies(&address, 2200);
    let (result, _) = fetched(authority.roots(), proven, url, PAGE).await;
    let named = authority.certifies("good.example", 2200);
    let (refused, heard) = fetched(authority.roots(), named, url, PAGE).await;

    assert_eq!(result, ToolResult::ok("HTTP/1.1 200 OK\n\npage"));
    assert_eq!(refused, ToolResult::error("unreachable"));
    assert_eq!(heard, []);
}

#[tokio::test]
async fn s43_a_server_is_named_without_the_dot() {
    let authority = Authority::new();
    let identity = authority.certifies("good.example", 2200);

    let url = "https://GOOD.example.:{port}/";
    let (result, heard) = fetched(authority.roots(), identity, url, PAGE).await;

    assert!(!result.is_error, "{result:?}");
    assert_eq!(heard[0].server_name.as_deref(), Some("good.example"));
    assert!(heard[0].head.contains("\r\nhost: good.example:"));
}

#[tokio::test]
async fn s74_a_server_that_would_rather_speak_http_2_is_not_let() {
    let authority = Authority::new();
    let identity = authority.certifies("good.example", 2200);

    let (_, heard) = fetched(authority.roots(), identity, URL, PAGE).await;

    assert_eq!(heard[0].protocol.as_deref(), Some(&b"http/1.1"[..]));
    assert!(heard[0].head.starts_with("GET / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn s53_a_redirect_never_leads_out_of_the_encrypted() {
    let authority = Authority::new();
    let identity = authority.certifies("good.example", 2200);
    let down = "HTTP/1.1 302 Found\r\nlocation: http://good.example/\r\n\r\n";

    let server = SecureServer::start(identity, down).await;
    let port = server.address.port();
    // The same host without encryption is listed as well, and is not asked.
    let hosts = [format!("good.example:{port}"), "good.example".to_owned()];
    let hosts = hosts.each_ref().map(String::as_str);
    let names = Names::all(&["127.0.0.1"]);
    let outbound = outbound(&hosts, &["127.0.0.0/8"], &names);
    let tool = HttpFetch::new(outbound.trusting(authority.roots()));

    let result = fetch(&tool, &format!("https://good.example:{port}/")).await;

    assert_eq!(result, ToolResult::error("invalid_url"));
    assert_eq!(names.asked(), ["good.example"]);
}

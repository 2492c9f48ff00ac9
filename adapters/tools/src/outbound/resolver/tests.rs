//! The resolver, before a name server that says what a test wrote.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hickory_resolver::config::ConnectionConfig;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

/// A record: of whom, of which kind, and what.
type Answer = (&'static str, u16, Vec<u8>);

/// A name server on the loopback that knows nothing but what it was told, and keeps what it was asked.
struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, u16)>>>,
    serving: JoinHandle<()>,
}

impl NameServer {
    async fn start(answer: impl Fn(u16) -> Vec<Answer> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("it is bound");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            let mut query = [0; 1500];
            loop {
                let (length, client) = socket.recv_from(&mut query).await.expect("a query");
                let (name, kind, end) = question(&query[..length]);
                let records = answer(kind);
                log.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((name, kind));
                let reply = reply(&query[..end], &records);
                socket.send_to(&reply, client).await.expect("it is sent");
            }
        });
        Self {
            address,
            asked,
            serving,
        }
    }

    /// A resolver that asks it and has search domains.
    fn resolver(&self) -> Dns {
        let mut udp = ConnectionConfig::udp();
        udp.port = self.address.port();
        let server = NameServerConfig::new(self.address.ip(), true, vec![udp]);
        let search = vec![Name::from_ascii("corp.example.").expect("a name")];
        Dns {
            instead: Some(ResolverConfig::from_parts(None, search, vec![server])),
        }
    }

    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let resolver = self.resolver();
        let asked = timeout(Duration::from_secs(20), resolver.addresses(name));
        asked.await.expect("an answer, good or bad")
    }

    fn asked(&self) -> Vec<(String, u16)> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.sort();
        asked.clone()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The name and the kind that a query asks for, and where its question ends.
fn question(query: &[u8]) -> (String, u16, usize) {
    let (mut at, mut name) = (12, String::new());
    while query[at] != 0 {
        let length = usize::from(query[at]);
        name.push_str(&String::from_utf8_lossy(&query[at + 1..=at + length]));
        name.push('.');
        at += length + 1;
    }
    let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
    (name, kind, at + 5)
}

fn reply(query: &[u8], records: &[Answer]) -> Vec<u8> {
    let mut reply = query.to_vec();
    // A response that is recursive; no such name if there is nothing to say.
    let code = if records.is_empty() { 3 } else { 0 };
    reply[2..4].copy_from_slice(&[0x81, 0x80 | code]);
    let count = u16::try_from(records.len()).expect("few records");
    reply[6..8].copy_from_slice(&count.to_be_bytes());
    reply[8..12].fill(0);
    for (name, kind, data) in records {
        reply.extend(encoded(name));
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 0]);
        let length = u16::try_from(data.len()).expect("short data");
        reply.extend(length.to_be_bytes());
        reply.extend(data);
    }
    reply
}

fn encoded(name: &str) -> Vec<u8> {
    let mut encoded = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        encoded.push(u8::try_from(label.len()).expect("a short label"));
        encoded.extend(label.as_bytes());
    }
    encoded.push(0);
    encoded
}

#[tokio::test]
async fn a_name_is_asked_for_as_it_is_and_all_its_addresses_are_told() {
    let v6 = Ipv6Addr::LOCALHOST;
    let server = NameServer::start(move |kind| match kind {
        A => vec![
            ("good.example", A, vec![93, 184, 215, 14]),
            ("good.example", A, vec![10, 0, 0, 1]),
        ],
        _ => vec![("good.example", AAAA, v6.octets().to_vec())],
    })
    .await;

    let found = server.addresses("good.example").await.expect("addresses");

    let v4: [IpAddr; 2] = [[93, 184, 215, 14].into(), [10, 0, 0, 1].into()];
    assert_eq!(found, [v4[0], v4[1], v6.into()]);
    let asked = ["good.example."; 2].map(str::to_owned);
    assert_eq!(
        server.asked(),
        asked.into_iter().zip([A, AAAA]).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn s60_an_alias_is_followed_to_what_it_means() {
    let server = NameServer::start(|kind| match kind {
        A => vec![
            ("good.example", CNAME, encoded("internal.corp.example")),
            ("internal.corp.example", A, vec![10, 0, 0, 1]),
        ],
        _ => Vec::new(),
    })
    .await;

    let found = server.addresses("good.example").await.expect("addresses");

    assert_eq!(found, [IpAddr::from([10, 0, 0, 1])]);
}

#[tokio::test]
async fn s63_neither_search_domains_nor_the_machines_own_names_are_tried() {
    let server = NameServer::start(|_| Vec::new()).await;
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let machine = machine.map_or_else(|_| "machine".to_owned(), |it| it.trim().to_owned());

    for name in ["tickets", "ip6-localhost", &machine] {
        assert!(server.addresses(name).await.is_err(), "{name}");
    }

    for (name, _) in server.asked() {
        assert!(!name.contains("corp"), "{name}");
    }
}

#[tokio::test]
async fn s64_a_name_server_that_says_nothing_is_left_when_nobody_waits_any_more() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let mut udp = ConnectionConfig::udp();
    udp.port = silent.local_addr().expect("it is bound").port();
    let server = NameServerConfig::new([127, 0, 0, 1].into(), true, vec![udp]);
    let resolver = Dns {
        instead: Some(ResolverConfig::from_parts(None, Vec::new(), vec![server])),
    };

    let waited = timeout(
        Duration::from_millis(100),
        resolver.addresses("good.example"),
    )
    .await;

    assert!(waited.is_err(), "{waited:?}");
}

//! What the tests of this crate's insides begin with.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hango_test_database::TestDatabase;
use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use crate::pool::{Limits, Pool};

/// The longest that anything may take, on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// What a pool of so many connections to a database keeps to.
pub(crate) fn limits(url: &str, connections: u32) -> Limits {
    Limits {
        connections,
        patience: Duration::from_secs(5),
        fresh: Duration::from_hours(1),
        connect: url.parse().expect("it is the URL of a database"),
        begin: "begin",
    }
}

/// A pool of so many connections to an empty database.
pub(crate) async fn pool(connections: u32) -> (Pool, TestDatabase) {
    let database = TestDatabase::new().await;
    let limits = limits(database.url(), connections);
    (Pool::new(limits, Handle::current()), database)
}

/// A way to a server, which can die silently: nothing is forwarded any more, and nothing is closed. Or
/// it loses an answer, and its connection with it.
pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    path: Arc<Path>,
}

struct Path {
    server: SocketAddr,
    /// Connections made before this many cuts are dead.
    cuts: AtomicU32,
    /// Whether the next answer is lost.
    loses: AtomicBool,
    /// What clients sent.
    sent: Mutex<Vec<u8>>,
}

impl Proxy {
    /// A proxy before the server of a database.
    pub(crate) async fn before(url: &str) -> Self {
        let options: PgConnectOptions = url.parse().expect("it is the URL of a database");
        let host = format!("{}:{}", options.get_host(), options.get_port());
        let mut servers = tokio::net::lookup_host(host).await.expect("it has one");
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there is a free port");
        let address = listener.local_addr().expect("it listens");
        let path = Arc::new(Path {
            server: servers.next().expect("its name is known"),
            cuts: AtomicU32::new(0),
            loses: AtomicBool::new(false),
            sent: Mutex::default(),
        });
        tokio::spawn(accept(listener, Arc::clone(&path)));
        Self { address, path }
    }

    /// The same database by way of this proxy.
    pub(crate) fn through(&self, url: &str) -> PgConnectOptions {
        let url = self.url(url);
        url.parse().expect("it is the URL of a database")
    }

    /// The URL of the same database by way of this proxy.
    pub(crate) fn url(&self, url: &str) -> String {
        let options: PgConnectOptions = url.parse().expect("it is the URL of a database");
        let there = format!("{}:{}", options.get_host(), options.get_port());
        url.replacen(&there, &self.address.to_string(), 1)
    }

    /// Lets every connection that there is die. New ones live.
    pub(crate) fn cut(&self) {
        self.path.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// Closes a client's connection in place of the next answer.
    pub(crate) fn lose(&self) {
        self.path.loses.store(true, Ordering::SeqCst);
    }

    /// Whether an answer is still to be lost.
    pub(crate) fn loses(&self) -> bool {
        self.path.loses.load(Ordering::SeqCst)
    }

    /// What clients sent up to now, as far as it is text.
    pub(crate) fn sent(&self) -> String {
        let sent = self.path.sent.lock();
        let sent = sent.unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&sent).into_owned()
    }
}

async fn accept(listener: TcpListener, path: Arc<Path>) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(path.server).await else {
            continue;
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::spawn(forward(Arc::clone(&path), true, from_client, to_server));
        tokio::spawn(forward(Arc::clone(&path), false, from_server, to_client));
    }
}

/// Forwards until one side ends, or for ever nothing after a cut.
async fn forward(
    path: Arc<Path>,
    from_client: bool,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) {
    let cuts = path.cuts.load(Ordering::SeqCst);
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if path.cuts.load(Ordering::SeqCst) != cuts {
            std::future::pending::<()>().await;
        }
        if from_client {
            let sent = path.sent.lock();
            let mut sent = sent.unwrap_or_else(PoisonError::into_inner);
            sent.extend_from_slice(&buffer[..length]);
        } else if path.loses.swap(false, Ordering::SeqCst) {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    if path.cuts.load(Ordering::SeqCst) != cuts {
        std::future::pending::<()>().await;
    }
}

//! What the tests stand on: a server that says what a test wrote and counts its sockets, and names that mean
//! what a test says.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hango_domain::RunId;
use hango_domain::tool::{Invocation, Tool, ToolResult};
use hango_tools::HttpFetch;
use hango_tools::outbound::{Outbound, Resolver, UrlPolicy};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

/// Nobody waits that long, unless something is wrong.
pub(crate) const AMPLE: Duration = Duration::from_secs(5);

/// A policy of these hosts and networks.
pub(crate) fn policy(hosts: &[&str], networks: &[&str]) -> UrlPolicy {
    let hosts = hosts.iter().map(|host| host.parse().expect("a host"));
    let networks = networks.iter().map(|it| it.parse().expect("a network"));
    UrlPolicy::new(hosts.collect(), networks.collect())
}

/// A tool that may reach these hosts, at public addresses and on the loopback of IPv4.
pub(crate) fn tool(hosts: &[&str], names: &Arc<Names>) -> HttpFetch {
    HttpFetch::new(outbound(hosts, &["127.0.0.0/8"], names))
}

/// The way out that such a tool has.
pub(crate) fn outbound(hosts: &[&str], networks: &[&str], names: &Arc<Names>) -> Outbound {
    Outbound::new(policy(hosts, networks), AMPLE).resolving_by(Arc::clone(names) as _)
}

/// One call of a tool.
pub(crate) async fn call(tool: &HttpFetch, input: Value) -> ToolResult {
    let Value::Object(input) = input else {
        panic!("{input} is no object");
    };
    execute(tool, input).await
}

/// A call for a URL.
pub(crate) async fn fetch(tool: &HttpFetch, url: &str) -> ToolResult {
    call(tool, json!({"url": url})).await
}

async fn execute(tool: &HttpFetch, input: Map<String, Value>) -> ToolResult {
    let invocation = Invocation {
        input,
        run: RunId(Uuid::nil()),
        tool_use_id: "call_1".to_owned(),
        idempotency_key: "key".to_owned(),
        traceparent: String::new(),
    };
    tool.execute(invocation).await
}

type Meaning = dyn Fn(&str, usize) -> Vec<IpAddr> + Send + Sync;

/// What names mean.
pub(crate) struct Names {
    meaning: Box<Meaning>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    /// What `meaning` says of a name that is asked for the n-th time, counting from 1; nothing is an error.
    pub(crate) fn new(
        meaning: impl Fn(&str, usize) -> Vec<IpAddr> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            meaning: Box::new(meaning),
            asked: Mutex::default(),
        })
    }

    /// Every name means these addresses.
    pub(crate) fn all(addresses: &[&str]) -> Arc<Self> {
        let addresses: Vec<_> = addresses.iter().map(|it| ip(it)).collect();
        Self::new(move |_, _| addresses.clone())
    }

    /// Every name that was asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let time = {
            let mut asked = lock(&self.asked);
            asked.push(name.to_owned());
            asked.iter().filter(|it| *it == name).count()
        };
        match (self.meaning)(name, time) {
            addresses if addresses.is_empty() => Err(io::ErrorKind::NotFound.into()),
            addresses => Ok(addresses),
        }
    }
}

/// An address.
pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// What a server says once it was asked.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// This, and then the connection ends.
    Bytes(Vec<u8>),
    /// This, and then nothing.
    Hold(Vec<u8>),
    /// The first, and then the second again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// This, a byte every so often.
    Drip(Vec<u8>, Duration),
}

impl Reply {
    /// Such text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Bytes(text.into().into_bytes())
    }

    /// A success with that body.
    pub(crate) fn ok(body: &str) -> Self {
        let length = body.len();
        Self::text(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
    }
}

/// A server of the test's, on every address of this machine. It counts connections, asked something or not.
pub(crate) struct Server {
    port: u16,
    log: Arc<Mutex<Log>>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    sockets: usize,
    heads: Vec<String>,
}

type Script = dyn Fn(&str, usize) -> Reply + Send + Sync;

impl Server {
    /// Says what `script` says to the n-th request, counting from 1, given its head.
    pub(crate) async fn start(
        script: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::on("[::]:0", script).await
    }

    /// Says the same to everyone.
    pub(crate) async fn saying(reply: Reply) -> Self {
        Self::start(move |_, _| reply.clone()).await
    }

    /// A server at that address.
    pub(crate) async fn on(
        address: &str,
        script: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let log = Arc::new(Mutex::new(Log::default()));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&log), Arc::new(script)));
        Self {
            port,
            log,
            accepting,
        }
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How many connections were made to it.
    pub(crate) fn sockets(&self) -> usize {
        lock(&self.log).sockets
    }

    /// The heads of the requests, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        lock(&self.log).heads.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, log: Arc<Mutex<Log>>, script: Arc<Script>) {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        lock(&log).sockets += 1;
        connections.spawn(serve(socket, Arc::clone(&log), Arc::clone(&script)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut socket: TcpStream, log: Arc<Mutex<Log>>, script: Arc<Script>) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        if !socket.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
            return;
        }
    }
    let head = String::from_utf8(bytes).expect("a head is text");
    let reply = {
        let mut log = lock(&log);
        log.heads.push(head.clone());
        script(&head, log.heads.len())
    };
    // Whoever has heard enough may have gone, at any point.
    drop(say(&mut socket, reply).await);
}

async fn say(socket: &mut TcpStream, reply: Reply) -> io::Result<()> {
    match reply {
        Reply::Bytes(bytes) => {
            socket.write_all(&bytes).await?;
            socket.shutdown().await
        }
        Reply::Hold(bytes) => {
            socket.write_all(&bytes).await?;
            socket.read(&mut [0; 8]).await.map(drop)
        }
        Reply::Endless(head, again) => {
            socket.write_all(&head).await?;
            loop {
                socket.write_all(&again).await?;
            }
        }
        Reply::Drip(bytes, every) => {
            for byte in bytes {
                socket.write_all(&[byte]).await?;
                tokio::time::sleep(every).await;
            }
            Ok(())
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

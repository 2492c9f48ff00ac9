//! What stands at the other end of an adapter that reaches outside, in a check's hand.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// How long anything may take that must happen: nobody waits that long unless a check fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What `work` brings, which must not take for ever.
pub(crate) async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, work).await;
    done.unwrap_or_else(|_| panic!("it takes for ever: {what}"))
}

/// The other end, as checks ask about it.
#[async_trait]
pub trait OtherSide: Send + Sync {
    /// Every request so far, in order, each as one text: whatever was sent of it.
    fn heard(&self) -> Vec<String>;

    /// Waits until a request that is being held has been given up by who made it.
    async fn hung_up(&self);

    /// Goes away: from now on nobody can be reached.
    async fn leave(&self);
}

/// What the next request is answered with, in bytes.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This, and then the connection ends.
    Whole(Vec<u8>),
    /// This, and then nothing more; the connection stays until the other one hangs up.
    Held(Vec<u8>),
    /// The first, and then the second again and again, until the other one hangs up.
    Endless(Vec<u8>, Vec<u8>),
}

/// An HTTP/1.1 server on the loopback that hears one request of each connection, and answers with bytes
/// that its test wrote: a broken answer is as easy as a good one.
pub struct FakeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    heard: Mutex<Vec<String>>,
    hung_up: Semaphore,
}

impl FakeServer {
    /// A server that gives these answers, one a request; a request behind the last is held unanswered.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.into_iter().collect()),
            heard: Mutex::default(),
            hung_up: Semaphore::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            accepting: Mutex::new(Some(accepting)),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn stop(&self) -> Option<JoinHandle<()>> {
        let accepting = lock(&self.accepting).take();
        accepting.inspect(JoinHandle::abort)
    }
}

#[async_trait]
impl OtherSide for FakeServer {
    fn heard(&self) -> Vec<String> {
        lock(&self.shared.heard).clone()
    }

    async fn hung_up(&self) {
        let permit = self.shared.hung_up.acquire().await;
        permit.expect("never closed").forget();
    }

    async fn leave(&self) {
        if let Some(accepting) = self.stop() {
            // Once it has ended, its listener and its connections are gone.
            drop(accepting.await);
        }
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        drop(self.stop());
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        connections.spawn(serve(socket, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    let Some(request) = request(&mut socket).await else {
        return;
    };
    let reply = {
        // One lock after the other, so that answers go out in the order in which requests are noted.
        let mut heard = lock(&shared.heard);
        heard.push(request);
        lock(&shared.replies).pop_front()
    };
    match reply.unwrap_or(Reply::Held(Vec::new())) {
        Reply::Whole(bytes) => {
            // Who has heard enough may have gone.
            drop(socket.write_all(&bytes).await);
            drop(socket.shutdown().await);
        }
        Reply::Held(bytes) => {
            let sent = socket.write_all(&bytes).await;
            if sent.is_ok() {
                // Nothing follows a request, so this ends when the connection does.
                drop(socket.read(&mut [0; 8]).await);
            }
            shared.hung_up.add_permits(1);
        }
        Reply::Endless(head, again) => {
            let mut sent = socket.write_all(&head).await;
            while sent.is_ok() {
                sent = socket.write_all(&again).await;
            }
            shared.hung_up.add_permits(1);
        }
    }
}

/// A request, its body included; `None` if the connection ends before.
async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let length = name.eq_ignore_ascii_case("content-length");
                length.then(|| value.trim().parse::<usize>().expect("a number"))
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
        let read = socket.read_buf(&mut bytes).await;
        if read.is_ok_and(|read| read > 0) {
            continue;
        }
        return None;
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

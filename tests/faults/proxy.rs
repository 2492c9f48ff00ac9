//! A TCP proxy between a replica and its database that can be slow, deaf, or cut at a byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// From the replica to its database.
    Up,
    /// Back.
    Down,
}

/// A proxy. Dropping it cuts everything that goes through it.
pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) port: u16,
    weather: Arc<Weather>,
    task: JoinHandle<()>,
}

/// What it does to those who go through it.
struct Weather {
    /// Before each piece is passed on, in milliseconds.
    delay: AtomicU64,
    /// Which ways nothing passes; nobody is told.
    stalled: watch::Sender<[bool; 2]>,
    /// How many more bytes pass before the connection is cut that brings one more; negative for any number.
    left: AtomicI64,
    /// Changes when everything is cut.
    cuts: watch::Sender<u64>,
}

impl Proxy {
    /// Starts one in front of that port of this machine.
    pub(crate) async fn start(target: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let weather = Arc::new(Weather {
            delay: AtomicU64::new(0),
            stalled: watch::Sender::default(),
            left: AtomicI64::new(-1),
            cuts: watch::Sender::default(),
        });
        let passing = Arc::clone(&weather);
        let task = tokio::spawn(async move {
            let target = SocketAddr::from(([127, 0, 0, 1], target));
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, target, Arc::clone(&passing)));
            }
        });
        Ok(Self {
            port,
            weather,
            task,
        })
    }

    /// Passes every piece on so much later.
    pub(crate) fn delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.weather.delay.store(millis, Ordering::SeqCst);
    }

    /// Passes nothing on in that direction, or again what has come meanwhile. Connections stay.
    pub(crate) fn stall(&self, way: Way, stalled: bool) {
        let place = way as usize;
        self.weather
            .stalled
            .send_modify(|ways| ways[place] = stalled);
    }

    /// Cuts the connection that brings the byte behind so many more from the database, and that one only.
    pub(crate) fn cut_after(&self, bytes: u32) {
        self.weather.left.store(bytes.into(), Ordering::SeqCst);
    }

    /// Cuts every connection.
    pub(crate) fn cut_all(&self) {
        self.weather.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        self.cut_all();
    }
}

async fn pass(replica: TcpStream, target: SocketAddr, weather: Arc<Weather>) {
    let mut cuts = weather.cuts.subscribe();
    // Whoever is not there refuses, and so does the proxy.
    let Ok(database) = TcpStream::connect(target).await else {
        return;
    };
    // Small pieces go at once, as they do without a proxy.
    if replica
        .set_nodelay(true)
        .and(database.set_nodelay(true))
        .is_err()
    {
        return;
    }
    let (from_replica, to_replica) = replica.into_split();
    let (from_database, to_database) = database.into_split();
    tokio::select! {
        () = carry(from_replica, to_database, &weather, Way::Up) => {}
        () = carry(from_database, to_replica, &weather, Way::Down) => {}
        _ = cuts.changed() => {}
    }
}

/// Carries one direction until either end is gone or the connection is cut.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    weather: &Weather,
    way: Way,
) {
    let mut stalled = weather.stalled.subscribe();
    let mut piece = vec![0; 16 * 1024];
    loop {
        let length = match from.read(&mut piece).await {
            Ok(length) if length > 0 => length,
            _ => return,
        };
        let delay = weather.delay.load(Ordering::SeqCst);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        if stalled.wait_for(|ways| !ways[way as usize]).await.is_err() {
            return;
        }
        let passes = if way == Way::Down {
            weather.passes(length)
        } else {
            length
        };
        if to.write_all(&piece[..passes]).await.is_err() || passes < length {
            return;
        }
    }
}

impl Weather {
    /// How many of so many bytes may pass before the cut, if there is one.
    fn passes(&self, length: usize) -> usize {
        let count = i64::try_from(length).unwrap_or(i64::MAX);
        let cut = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
                ..0 => None,
                // The next connection is not cut.
                _ if left < count => Some(-1),
                _ => Some(left - count),
            });
        match cut {
            Ok(left) if left < count => usize::try_from(left).unwrap_or_default(),
            _ => length,
        }
    }
}

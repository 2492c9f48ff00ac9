//! A way to PostgreSQL that counts what travels on it: every round trip, `begin` and `commit` included,
//! and which statements each transaction consisted of. The server's own statistics know neither.
//!
//! It is only between the two when something is counted, since it costs time. It reads the protocol's
//! frames and passes them on as they are. Connections must not be encrypted (`sslmode=disable`).

mod frames;
mod tally;

use std::sync::Arc;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use frames::{Backend, Frames, Frontend};
use tally::Watched;
pub(crate) use tally::{Counted, Kind, Tally, Times, kind_of, shown};

/// How much is read at once.
const PIECE: usize = 16 * 1024;

/// The way; it ends with the process.
pub(crate) struct Wire {
    port: u16,
    tally: Arc<Tally>,
}

impl Wire {
    /// Opens a way to the server on `port`.
    pub(crate) async fn open(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let wire = Self {
            port: listener.local_addr()?.port(),
            tally: Arc::default(),
        };
        let tally = Arc::clone(&wire.tally);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let tally = Arc::clone(&tally);
                tokio::spawn(async move {
                    // Whoever is at an end sees by himself that the other one is not there any more.
                    let _ = carry(client, port, tally).await;
                });
            }
        });
        Ok(wire)
    }

    /// Where it begins.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What has been counted so far.
    pub(crate) fn counted(&self) -> Counted {
        self.tally.counted()
    }
}

async fn carry(client: TcpStream, port: u16, tally: Arc<Tally>) -> anyhow::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port));
    let server = server.await.context("PostgreSQL does not listen")?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let watched = Watched::new(tally);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut asked = Frames::of_client();
    let mut answered = Frames::of_server();
    let there = pass(from_client, to_server, |bytes| {
        asked.read(bytes, |kind, body| {
            if let Some(message) = Frontend::read(kind, body) {
                watched.asked(message);
            }
        });
    });
    let back = pass(from_server, to_client, |bytes| {
        answered.read(bytes, |kind, body| {
            if let Some(message) = Backend::read(kind, body) {
                watched.answered(message);
            }
        });
    });
    tokio::try_join!(there, back)?;
    Ok(())
}

/// Passes bytes on until there are no more, and shows them before.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut show: impl FnMut(&[u8]),
) -> anyhow::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        show(&piece[..read]);
        to.write_all(&piece[..read]).await?;
    }
}

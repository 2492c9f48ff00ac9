//! What clients ask for meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::dice::Dice;
use crate::truth::client::Client;

/// How many runs are asked for at once.
const POSTS: usize = 64;

/// Runs that are asked for beside everything else; clones count together.
#[derive(Clone)]
pub(crate) struct Load {
    client: Client,
    posts: Arc<Semaphore>,
    begun: Arc<AtomicUsize>,
    pending: Arc<AtomicUsize>,
}

/// Runs that are asked for one after the other, until this is dropped.
pub(crate) struct Steady(JoinHandle<()>);

impl Load {
    /// None yet.
    pub(crate) fn of(client: &Client) -> Self {
        Self {
            client: client.clone(),
            posts: Arc::new(Semaphore::new(POSTS)),
            begun: Arc::default(),
            pending: Arc::default(),
        }
    }

    /// Opens so many sessions.
    pub(crate) async fn sessions(&self, count: usize) -> anyhow::Result<Vec<String>> {
        let sessions = (0..count).map(|_| self.client.open_session());
        futures::future::try_join_all(sessions).await
    }

    /// Starts a run in a session and follows it to its end.
    pub(crate) fn begin(&self, session: &str) -> JoinHandle<Option<String>> {
        let n = self.begun.fetch_add(1, Ordering::SeqCst);
        self.begin_as(session, &format!("run {n}"))
    }

    /// Starts a run of that name; its id, once it has ended.
    pub(crate) fn begin_as(&self, session: &str, name: &str) -> JoinHandle<Option<String>> {
        let (load, session, name) = (self.clone(), session.to_owned(), name.to_owned());
        self.pending.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            let post = load.posts.acquire().await;
            let started = load.client.start_run(&session, &name).await;
            drop(post);
            let run = match started {
                Ok(accepted) => {
                    load.client.follow(&accepted.id).await;
                    Some(accepted.id)
                }
                Err(error) => {
                    load.client.note_wrong(format!("{name}: {error:#}"));
                    None
                }
            };
            load.pending.fetch_sub(1, Ordering::SeqCst);
            run
        })
    }

    /// Starts a run every now and then, in one of the sessions.
    pub(crate) fn steady(&self, sessions: &[String], every: Duration, mut dice: Dice) -> Steady {
        let (load, sessions) = (self.clone(), sessions.to_vec());
        Steady(tokio::spawn(async move {
            loop {
                let session: &String = dice.pick(&sessions);
                drop(load.begin(session));
                tokio::time::sleep(every).await;
            }
        }))
    }

    /// How many runs were begun.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// How many of them were not seen to end yet.
    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Ordering::SeqCst)
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        self.0.abort();
    }
}

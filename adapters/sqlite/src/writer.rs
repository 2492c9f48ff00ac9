//! The one connection that writes, and the thread that owns it.
//!
//! * A job is a closure over the connection. Jobs that wait are committed together: one synchronous
//!   write to the disk pays for all of them. Each runs in a savepoint of its own, so that one which
//!   fails is undone alone.
//! * A job's answer is sent after the commit, never before; if the commit fails, everybody in it is
//!   told so.
//! * Whoever drops the future that waits for an answer changes nothing here: a transaction is never
//!   interrupted.
//! * The runtime is the thread's own, so that no other work of the process can hold a commit back, and
//!   urgent jobs go ahead of the others: a renewal never waits behind a backlog.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{Instrument, Span};

use crate::error::Error;

/// The most jobs that are committed together: the first of them waits for the last.
const BATCH: usize = 32;

/// Jobs that may wait before callers have to.
const QUEUE: usize = 1024;

/// Which jobs go first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Urgency {
    /// Leases and cancels: what others wait for or die of.
    Urgent,
    /// All else.
    Normal,
}

/// Something to be done in a transaction.
trait Job: Send {
    /// Does it; tells whether that shall stay.
    fn run<'a>(&'a mut self, conn: &'a mut SqliteConnection) -> LocalBoxFuture<'a, bool>;

    /// Answers the caller, now that it is known whether the transaction was committed.
    fn answer(self: Box<Self>, fate: Result<(), Error>);
}

/// A caller's closure, and what came of it.
struct Task<F, T, E> {
    closure: Option<F>,
    result: Option<Result<T, E>>,
    caller: oneshot::Sender<Result<T, E>>,
    span: Span,
}

impl<F, T, E> Job for Task<F, T, E>
where
    F: AsyncFnOnce(&mut SqliteConnection) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run<'a>(&'a mut self, conn: &'a mut SqliteConnection) -> LocalBoxFuture<'a, bool> {
        let span = self.span.clone();
        let run = async {
            let Some(closure) = self.closure.take() else {
                return false;
            };
            let result = self.result.insert(closure(conn).await);
            result.is_ok()
        };
        run.instrument(span).boxed_local()
    }

    fn answer(self: Box<Self>, fate: Result<(), Error>) {
        let result = match (fate, self.result) {
            (Ok(()), Some(result)) => result,
            // It panicked.
            (Ok(()), None) => Err(Error::Closed.into()),
            // Even a refusal may rest on what another job did, and that is undone now.
            (Err(error), _) => Err(error.into()),
        };
        // Nobody may wait any more; what was done stays done.
        let _ = self.caller.send(result);
    }
}

/// Where jobs are handed in.
pub(crate) struct Writer {
    urgent: mpsc::Sender<Box<dyn Job>>,
    normal: mpsc::Sender<Box<dyn Job>>,
    stop: watch::Sender<bool>,
    ended: watch::Receiver<()>,
}

impl Writer {
    /// Starts the thread. It keeps `lock` until it has closed the connection.
    pub(crate) fn start(conn: SqliteConnection, lock: Option<File>) -> std::io::Result<Self> {
        let (urgent, urgent_jobs) = mpsc::channel(QUEUE);
        let (normal, normal_jobs) = mpsc::channel(QUEUE);
        let (stop, stopping) = watch::channel(false);
        let (running, ended) = watch::channel(());
        let queue = Queue {
            urgent: urgent_jobs,
            normal: normal_jobs,
            stop: stopping,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        std::thread::Builder::new()
            .name("hango-sqlite-writer".to_owned())
            .spawn(move || {
                runtime.block_on(write_all(conn, queue));
                drop(lock);
                drop(running);
            })?;
        Ok(Self {
            urgent,
            normal,
            stop,
            ended,
        })
    }

    /// Runs `job` in a transaction and answers what it did, after the commit. What it does is undone if
    /// it returns an error.
    pub(crate) async fn write<T, E, F>(&self, urgency: Urgency, job: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (caller, answered) = oneshot::channel();
        let task = Task {
            closure: Some(job),
            result: None,
            caller,
            span: Span::current(),
        };
        let queue = match urgency {
            Urgency::Urgent => &self.urgent,
            Urgency::Normal => &self.normal,
        };
        let sent = queue.send(Box::new(task)).await;
        sent.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }

    /// Lets the jobs that wait be done, refuses others, and closes the connection. Returns when the
    /// file is no longer in use here.
    pub(crate) async fn close(&self) {
        self.stop.send_replace(true);
        // Fails when the thread has dropped its end: that is what is waited for.
        let _ = self.ended.clone().changed().await;
    }
}

/// The jobs that wait.
struct Queue {
    urgent: mpsc::Receiver<Box<dyn Job>>,
    normal: mpsc::Receiver<Box<dyn Job>>,
    stop: watch::Receiver<bool>,
}

impl Queue {
    /// Waits for a job and takes those that wait behind it; `None` when no more will come.
    async fn next(&mut self) -> Option<Vec<Box<dyn Job>>> {
        let first = loop {
            let stopping = *self.stop.borrow_and_update();
            if stopping {
                // What waits is still done.
                self.urgent.close();
                self.normal.close();
            }
            tokio::select! {
                biased;
                Some(job) = self.urgent.recv() => break job,
                Some(job) = self.normal.recv() => break job,
                Ok(()) = self.stop.changed(), if !stopping => {}
                else => return None,
            }
        };
        let mut batch = vec![first];
        while batch.len() < BATCH {
            match self.urgent.try_recv().or_else(|_| self.normal.try_recv()) {
                Ok(job) => batch.push(job),
                Err(_) => break,
            }
        }
        Some(batch)
    }
}

async fn write_all(mut conn: SqliteConnection, mut queue: Queue) {
    while let Some(batch) = queue.next().await {
        commit(&mut conn, batch).await;
    }
    if let Err(error) = conn.close().await {
        tracing::warn!(%error, "the database was not closed cleanly");
    }
}

/// Runs a batch in one transaction, then answers.
async fn commit(conn: &mut SqliteConnection, batch: Vec<Box<dyn Job>>) {
    let mut done = Vec::with_capacity(batch.len());
    let fate = run_all(conn, batch, &mut done).await;
    if let Err(error) = &fate {
        tracing::warn!(%error, jobs = done.len(), "changes were not committed");
        // Where SQLite undid the transaction itself there is nothing to undo.
        let _ = control(conn, "rollback").await;
    }
    for job in done {
        job.answer(fate.clone());
    }
}

async fn run_all(
    conn: &mut SqliteConnection,
    batch: Vec<Box<dyn Job>>,
    done: &mut Vec<Box<dyn Job>>,
) -> Result<(), Error> {
    let mut batch = batch.into_iter();
    let mut fate = control(conn, "begin immediate").await;
    while let (Ok(()), Some(mut job)) = (&fate, batch.next()) {
        // Savepoints nest, and the commit ends them all.
        fate = control(conn, "savepoint job").await;
        if fate.is_ok() {
            let ran = AssertUnwindSafe(job.run(conn)).catch_unwind().await;
            if !ran.unwrap_or(false) {
                fate = control(conn, "rollback to job").await;
                if fate.is_err() {
                    // Its own error says better why the transaction is gone.
                    job.answer(Ok(()));
                    break;
                }
            }
        }
        done.push(job);
    }
    done.extend(batch);
    fate?;
    control(conn, "commit").await
}

async fn control(conn: &mut SqliteConnection, statement: &'static str) -> Result<(), Error> {
    sqlx::query(statement).execute(conn).await?;
    Ok(())
}

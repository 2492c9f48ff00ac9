//! Where the work of an engine is performed: on the runtime that it was started on, with renewal apart from
//! everything else, or wherever a simulation puts it, which holds up whole processes and kills them.

use std::pin::Pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Performs what an engine does.
pub trait Tasks: Send + Sync {
    /// Performs `work` beside everything else.
    fn spawn(&self, work: BoxFuture<'static, ()>);

    /// Performs `work` where nothing else can starve it; what is returned waits for its end.
    ///
    /// # Errors
    ///
    /// When there is no such place, because the operating system gives no thread.
    fn spawn_apart(&self, work: BoxFuture<'static, ()>) -> std::io::Result<Over>;
}

/// Ends when some work is over.
pub type Over = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// The present runtime, and a thread with a runtime of its own for what must not be starved.
pub(super) struct PresentRuntime;

impl Tasks for PresentRuntime {
    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }

    fn spawn_apart(&self, work: BoxFuture<'static, ()>) -> std::io::Result<Over> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new()
            .name("hango-renewal".to_owned())
            .spawn(move || runtime.block_on(work))?;
        Ok(Box::pin(async move {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the renewal thread did not end well");
            }
        }))
    }
}

/// The executors of an engine, and claims that are under way: what a drain waits for.
pub(super) struct Executors {
    tasks: Arc<dyn Tasks>,
    tracker: TaskTracker,
}

impl Executors {
    pub(super) fn new(tasks: Arc<dyn Tasks>) -> Self {
        Self {
            tasks,
            tracker: TaskTracker::new(),
        }
    }

    /// Performs `work`, and counts it until it is over.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(Box::pin(self.tracker.track_future(work)));
    }

    /// Counts until it is dropped.
    pub(super) fn token(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }

    /// From now on [`wait`](Self::wait) may end.
    pub(super) fn close(&self) {
        self.tracker.close();
    }

    /// Waits until nothing is counted any more.
    pub(super) async fn wait(&self) {
        self.tracker.wait().await;
    }
}

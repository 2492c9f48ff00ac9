//! Panics: background work that must not end starts again; work for one run ends for that run alone.
//! What a panic said, and where, the process's panic hook has logged by then.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::Shared;

/// The wait before work that panicked starts again.
pub(super) const RESTART_AFTER: Duration = Duration::from_secs(1);

/// Runs `work` until the engine stops.
pub(super) fn keep<F>(
    name: &'static str,
    shared: &Arc<Shared>,
    work: impl Fn(Arc<Shared>) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        loop {
            let task = tokio::spawn(work(Arc::clone(&shared)));
            let abort = task.abort_handle();
            tokio::select! {
                () = shared.stopped.cancelled() => return abort.abort(),
                ended = task => match ended {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::error!(task = name, %error, "background work panicked; it starts again");
                        tokio::time::sleep(RESTART_AFTER).await;
                    }
                },
            }
        }
    });
}

/// What `work` brings; `None` if it panics.
///
/// Unwind safety is asserted: whoever calls does not go on with what `work` may have left half done.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

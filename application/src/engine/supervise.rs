//! Panics: background work that must not end starts again; work for one run ends for that run alone.
//! What a panic said, and where, the process's panic hook has logged by then.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::Shared;

/// The wait before work that panicked starts again.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// Does `work` until it is done or the engine stops, beside everything else.
pub(super) fn keep<F>(
    name: &'static str,
    shared: &Arc<Shared>,
    work: impl Fn(Arc<Shared>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let kept = kept(name, Arc::clone(shared), work);
    shared.tasks.spawn(Box::pin(kept));
}

/// Does `work` until it is done or the engine stops, again and again where it panics.
pub(super) async fn kept<F>(
    name: &'static str,
    shared: Arc<Shared>,
    work: impl Fn(Arc<Shared>) -> F,
) where
    F: Future<Output = ()>,
{
    let working = async {
        while caught(work(Arc::clone(&shared))).await.is_none() {
            tracing::error!(task = name, "background work panicked; it starts again");
            tokio::time::sleep(RESTART_AFTER).await;
        }
    };
    tokio::select! {
        biased;
        () = shared.stopped.cancelled() => {}
        () = working => {}
    }
}

/// What `work` brings; `None` if it panics.
///
/// Unwind safety is asserted: whoever calls does not go on with what `work` may have left half done.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

//! Background work that must not end: when it panics, that is logged and it starts again.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

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

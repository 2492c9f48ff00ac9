//! The boundary that a tool's panic does not cross.
//!
//! A tool is other people's code. Its panic becomes a message that the model reads, and the run goes
//! on. The stack is not lost: the process's panic hook logs it before the unwinding begins.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{ToolFailure, ToolResult};

/// A future that may be polled from any thread.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the future that `start` makes brings, or the message of a panic: in `start` before there is a
/// future, or in any of its polls.
pub(crate) async fn caught<'a, T>(start: impl FnOnce() -> Boxed<'a, T>) -> Result<T, String> {
    CatchUnwind(catch(start)?).await
}

/// What `call` returns, or the message of its panic.
///
/// Unwind safety is asserted: whoever calls drops, or restores, what `call` may have left half done.
pub(crate) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| message(payload.as_ref()))
}

/// What a model is told of a tool that panicked.
pub(crate) fn panicked(message: &str) -> ToolResult {
    let text = format!("the tool panicked: {message}");
    ToolResult::failed(ToolFailure::Panic, text)
}

struct CatchUnwind<'a, T>(Boxed<'a, T>);

impl<T> Future for CatchUnwind<'_, T> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match catch(|| self.0.as_mut().poll(cx)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(message) => Poll::Ready(Err(message)),
        }
    }
}

/// What a panic said: the text of `panic!`, which is nearly always there.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use std::future::{poll_fn, ready};
    use std::panic::panic_any;

    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_future_that_does_not_panic_is_only_awaited() {
        let mut polls = 0;
        let slow = poll_fn(move |cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls < 3 {
                Poll::Pending
            } else {
                Poll::Ready(polls)
            }
        });

        assert_eq!(block_on(caught(|| Box::pin(slow))), Ok(3));
    }

    #[test]
    fn a_panic_before_there_is_a_future_is_caught() {
        assert_eq!(
            block_on(caught::<()>(|| panic!("no future"))),
            Err("no future".to_owned())
        );
    }

    #[test]
    fn a_panic_in_a_later_poll_is_caught() {
        let mut waited = false;
        let late = poll_fn(move |cx| {
            assert!(!waited, "late, after {}", "a wait");
            waited = true;
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });

        assert_eq!(
            block_on(caught(|| Box::pin(late))),
            Err("late, after a wait".to_owned())
        );
    }

    #[test]
    fn a_panic_without_a_text_is_caught_too() {
        assert_eq!(
            block_on(caught(|| Box::pin(async { panic_any(7) }))).map(|(): ()| ()),
            Err("no message".to_owned())
        );
        assert_eq!(block_on(caught(|| Box::pin(ready(7)))), Ok(7));
    }
}

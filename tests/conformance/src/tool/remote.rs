//! Tools that reach another process: what they tell it, what they do when it misbehaves, and that they
//! let go of it.

use std::sync::Arc;
use std::time::Duration;

use hango_ports::tool::{Idempotency, ToolResult};

use super::{AMPLE, RemoteTool, SHORT, Service, invocation};
use crate::other_side::in_time;

async fn execute(remote: &RemoteTool, n: u32) -> ToolResult {
    let asked = invocation(remote.sample.good.clone(), n);
    let execution = remote.sample.tool.execute(asked);
    in_time("an execution", execution).await
}

/// Whatever stood in the way, the model reads of it, and of nothing that it may not know.
fn is_told(remote: &RemoteTool, result: &ToolResult) {
    assert!(result.is_error, "{result:?}");
    assert!(!result.for_llm.trim().is_empty(), "{result:?}");
    let told = format!("{} {:?}", result.for_llm, result.for_user);
    for secret in &remote.secrets {
        assert!(!told.contains(secret), "{secret:?} is in {told}");
    }
}

/// What the service says is the result.
pub async fn the_services_answer_is_the_result(
    stage: impl AsyncFn(Service, Duration) -> RemoteTool,
) {
    let answer = "ticket 7 caf\u{e9} \u{1f600}";
    let remote = stage(Service::Answers(answer.to_owned()), AMPLE).await;

    let result = execute(&remote, 1).await;

    assert!(!result.is_error, "{result:?}");
    assert!(result.for_llm.contains(answer), "{result:?}");
}

/// A call is made once, and a keyed one with its key: who makes it again is the engine, with the same
/// key, after a crash.
pub async fn a_call_is_made_once_and_with_its_key(
    stage: impl AsyncFn(Service, Duration) -> RemoteTool,
) {
    for service in [Service::Answers("done".to_owned()), Service::Fails] {
        let remote = stage(service, AMPLE).await;

        execute(&remote, 42).await;

        let heard = remote.other_side.heard();
        let [request] = heard.as_slice() else {
            panic!("one request, not {heard:?}");
        };
        let keyed = remote.sample.tool.idempotency() == Idempotency::Keyed;
        assert!(!keyed || request.contains("key-of-call-42"), "{request}");
    }
}

/// A failure of the service is a result, as everything is; what the service quotes of the call is not.
pub async fn a_service_that_fails_is_an_error(
    stage: impl AsyncFn(Service, Duration) -> RemoteTool,
) {
    let remote = stage(Service::Fails, AMPLE).await;

    let result = execute(&remote, 1).await;

    is_told(&remote, &result);
}

/// Nobody there is an error that does not tell where nobody was.
pub async fn a_service_that_is_not_there_is_an_error(
    stage: impl AsyncFn(Service, Duration) -> RemoteTool,
) {
    let remote = stage(Service::Hangs, AMPLE).await;
    remote.other_side.leave().await;

    let result = execute(&remote, 1).await;

    is_told(&remote, &result);
}

/// Silence is not waited for longer than the tool was told to wait.
pub async fn a_silent_service_is_an_error_in_time(
    stage: impl AsyncFn(Service, Duration) -> RemoteTool,
) {
    let remote = stage(Service::Hangs, SHORT).await;

    let result = execute(&remote, 1).await;

    is_told(&remote, &result);
    in_time("the service is let go of", remote.other_side.hung_up()).await;
}

/// A result has an end, even if the answer has none.
pub async fn an_answer_without_an_end_is_cut(stage: impl AsyncFn(Service, Duration) -> RemoteTool) {
    let remote = stage(Service::Endless, AMPLE).await;

    let result = execute(&remote, 1).await;

    assert!(
        result.for_llm.len() <= remote.most_bytes,
        "{}",
        result.for_llm.len()
    );
    in_time("the service is let go of", remote.other_side.hung_up()).await;
}

/// A cancelled run, or a tool's time limit, drops the execution: nobody works for it any more.
pub async fn a_dropped_execution_is_let_go_of(
    stage: impl AsyncFn(Service, Duration) -> RemoteTool,
) {
    let remote = stage(Service::Hangs, AMPLE).await;
    let (tool, good) = (Arc::clone(&remote.sample.tool), remote.sample.good.clone());
    let execution = tokio::spawn(async move { tool.execute(invocation(good, 1)).await });
    in_time("the request", async {
        while remote.other_side.heard().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;

    execution.abort();

    in_time("the service is let go of", remote.other_side.hung_up()).await;
}

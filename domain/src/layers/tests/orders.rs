//! Whatever order calls end in, and wherever a crash interrupts their batch: results and memory are
//! those of one call after the other.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::FuturesUnordered;
use proptest::prelude::*;

use super::*;
use crate::fixtures::tool_call;
use crate::middleware::{Batch, ToolHandler, ToolRequest};
use crate::note::Notes;
use crate::tool::View;

type Results = BTreeMap<u32, ToolResult>;

/// Executes a call after so many polls as its position has delay.
struct Delayed<'a> {
    chain: &'a Chain,
    view: &'a View,
    delays: &'a [usize],
}

#[async_trait]
impl ToolHandler for Delayed<'_> {
    async fn call(&self, call: ToolRequest, batch: &Batch) -> ToolResult {
        let mut left = self.delays[call.position as usize - 1];
        poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.chain.execute(call, self.view, batch).await
    }
}

/// A run in whose memory something is already, and the tools it can call.
struct World {
    chain: Chain,
    view: View,
    memory: RunMemory,
}

impl World {
    fn new() -> Self {
        let mut registry = Registry::new();
        let registered = registry.register(Arc::new(Named("look")));
        assert_eq!(registered, Ok(()));
        let mut world = Self {
            chain: stack(&agent(&json!({}), &[]), 3),
            view: registry.view(&[]),
            memory: RunMemory::default(),
        };
        let calls = vec![call_of(1, 0), call_of(2, 3)];
        let batch = world.batch(&calls);
        let mut results = Results::new();
        world.execute(&batch, &calls, &[0, 0], usize::MAX, &mut results);
        world.memory = batch.into_memory();
        world
    }

    fn batch(&self, calls: &[ToolRequest]) -> Batch {
        Batch::new(self.memory.clone(), Notes::default()).of(calls.to_vec())
    }

    /// Executes calls side by side, until so many of them have ended.
    fn execute(
        &self,
        batch: &Batch,
        calls: &[ToolRequest],
        delays: &[usize],
        until: usize,
        results: &mut Results,
    ) {
        let base = Delayed {
            chain: &self.chain,
            view: &self.view,
            delays,
        };
        let base = &base;
        let running = calls.iter().map(|call| async move {
            let result = self.chain.tool(call.clone(), batch, base).await;
            (call.position, result)
        });
        let running: FuturesUnordered<_> = running.collect();
        results.extend(block_on(running.take(until).collect::<Vec<_>>()));
    }

    /// One call after the other.
    fn in_order(&self, calls: &[ToolRequest]) -> (Results, RunMemory) {
        let batch = self.batch(calls);
        let mut results = Results::new();
        let delays = vec![0; calls.len()];
        for call in calls {
            let one = std::slice::from_ref(call);
            self.execute(&batch, one, &delays, 1, &mut results);
        }
        (results, batch.into_memory())
    }
}

/// One of a few calls, some of them equal, some wrong.
fn call_of(position: u32, kind: u8) -> ToolRequest {
    let list = |content: &str| json!({"todos": [{"content": content, "status": "pending"}]});
    let (name, input) = match kind {
        0 => ("write_todos", list("look")),
        1 => ("write_todos", list(&format!("think {position}"))),
        2 => ("write_todos", json!({"todos": "look"})),
        3 => ("look", json!({"at": 1})),
        4 => ("look", json!({"at": 1.0})),
        5 => ("look", json!({"at": 2})),
        _ => ("nobody", json!({})),
    };
    ToolRequest {
        position,
        input: input.as_object().cloned().unwrap_or_default(),
        ..tool_call(name)
    }
}

proptest! {
    #[test]
    fn a_batch_ends_as_if_its_calls_had_been_made_one_by_one(
        kinds in prop::collection::vec(0..7_u8, 1..8),
        first in prop::collection::vec(0..20_usize, 8),
        second in prop::collection::vec(0..20_usize, 8),
        crash_after in 0..9_usize,
    ) {
        let world = World::new();
        let calls: Vec<_> = (1..).zip(kinds).map(|(at, kind)| call_of(at, kind)).collect();
        let expected = world.in_order(&calls);

        let mut results = Results::new();
        let batch = world.batch(&calls);
        world.execute(&batch, &calls, &first, crash_after, &mut results);
        drop(batch);

        // What had ended is on record; the memory is that of the boundary before.
        let batch = world.batch(&calls);
        let (passed, open): (Vec<_>, Vec<_>) = calls
            .iter()
            .cloned()
            .partition(|call| results.contains_key(&call.position));
        for call in passed {
            let result = results[&call.position].clone();
            block_on(world.chain.replay(call, result, &world.view, &batch));
        }
        world.execute(&batch, &open, &second, usize::MAX, &mut results);

        prop_assert_eq!((results, batch.into_memory()), expected);
    }
}

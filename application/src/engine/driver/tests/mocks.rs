//! A driver whose every port is a mock, and a layer that it goes through.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hango_conformance::{Fixture, ManualClock, owner};
use hango_domain::agent::RunLimits;
use hango_domain::agent_loop::{LoopLimits, Start};
use hango_domain::conversation::StopReason;
use hango_domain::middleware::{Batch, Middleware, ModelNext, ToolNext, ToolRequest};
use hango_domain::model::{ModelReply, Stop as ModelStop, StreamEvent};
use hango_domain::retry::RetryPolicy;
use hango_domain::tool::{Registry, ToolResult};
use hango_memory::MemoryStore;
use hango_ports::event_sink::MockEventSink;
use hango_ports::ids::MockIds;
use hango_ports::provider::MockProvider;
use hango_ports::run_store::{Claimed, MockRunStore, RunContext, Written};
use hango_ports::telemetry::MockTelemetry;
use hango_ports::wake_up::Alone;
use mockall::Sequence;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::engine::driver::*;
use crate::engine::leases::{LeaseGuard, Leases};
use crate::engine::tasks::{Executors, PresentRuntime};
use crate::engine::{EngineParts, EngineSettings, Shared};
use crate::signals::Signals;

/// A layer that counts model calls in the run's memory, and panics where it is told to.
#[derive(Default)]
pub(super) struct Counting {
    pub(super) panics_around_model: bool,
    pub(super) panics_around_tool: bool,
    replies: std::sync::Mutex<Vec<ModelReply>>,
}

#[async_trait]
impl Middleware for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    async fn model(
        &self,
        call: ModelCall,
        memory: &mut RunMemory,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        assert!(!self.panics_around_model, "as the test wants it");
        let before: u32 = memory.load("counting").ok().flatten().unwrap_or(0);
        memory.store("counting", &(before + 1)).expect("a number");
        let reply = next.run(call, memory).await?;
        let mut replies = self.replies.lock().expect("nobody panicked");
        replies.push(reply.clone());
        Ok(reply)
    }

    async fn tool(&self, call: ToolRequest, batch: &Batch, next: ToolNext<'_>) -> ToolResult {
        assert!(!self.panics_around_tool, "as the test wants it");
        next.run(call, batch).await
    }
}

/// The mocks of one test, and the layer.
pub(super) struct Mocks {
    pub(super) runs: MockRunStore,
    pub(super) sink: MockEventSink,
    provider: MockProvider,
    pub(super) layer: Counting,
    pub(super) lease_ttl: Duration,
}

impl Mocks {
    /// A store that nobody may ask, and watchers who may be told anything.
    pub(super) fn new() -> Self {
        let mut sink = MockEventSink::new();
        sink.expect_emit().return_const(());
        Self {
            runs: MockRunStore::new(),
            sink,
            provider: MockProvider::new(),
            layer: Counting::default(),
            lease_ttl: Duration::from_mins(1),
        }
    }

    /// The provider answers with these, one after the other.
    pub(super) fn answers(&mut self, answers: Vec<Vec<StreamEvent>>) {
        let mut order = Sequence::new();
        for answer in answers {
            let stream = self.provider.expect_stream().once();
            stream.in_sequence(&mut order).return_once(|_| {
                let events = stream::iter(answer.into_iter().map(Ok));
                Ok(events.boxed())
            });
        }
    }

    /// Executes a fresh run with them; what a model call and the layer leave is returned too.
    pub(super) async fn execute(self) -> (Result<RunStatus, Abandoned>, Vec<ModelReply>) {
        let Claimed {
            lease,
            run,
            standing,
            context,
            ..
        } = claimed().await;
        let RunContext { agent, history, .. } = context.expect("it can be read");
        let layer = Arc::new(self.layer);
        let chain = Chain::new(vec![Arc::clone(&layer) as _]);
        let shared = shared();
        let guard = LeaseGuard::hold(&shared, lease, Instant::now(), self.lease_ttl);
        let mut telemetry = MockTelemetry::new();
        telemetry.expect_observe().return_const(());
        let sink = Arc::new(self.sink);
        let view = Registry::new().view(&[]);
        let driver = Driver {
            runs: &self.runs,
            sink: &*sink,
            telemetry: &telemetry,
            gate: &shared.gate,
            model: StreamedModel::new(Arc::new(self.provider), Arc::clone(&sink) as _),
            tools: BoundedTools {
                chain: chain.clone(),
                view: view.clone(),
                timeout: Duration::from_secs(1),
                max_bytes: 1000,
            },
            agent,
            chain,
            view,
            context: CallContext {
                tenant: run.tenant_id,
                agent: run.agent_id,
                session: run.session_id,
                run: run.id,
                turn: 1,
                attempt: lease.attempt,
                trace: run.trace.clone(),
            },
            notes: Notes::default(),
            account: None,
        };
        let mut ids = 0;
        let agent = AgentLoop::new(Start {
            run: &run,
            lease,
            history,
            calls: Vec::new(),
            classes: BTreeMap::new(),
            limits: LoopLimits {
                max_iterations: 5,
                tool_concurrency: 2,
                retry: settings().retry,
            },
            ids: Box::new(move || {
                ids += 1;
                uuid::Uuid::from_u128(ids)
            }),
        });
        let options = RunOptions {
            lease: &guard,
            cancel: CancellationToken::new(),
            draining: CancellationToken::new(),
            aborting: CancellationToken::new(),
            deadline: Instant::now() + Duration::from_mins(1),
        };
        let memory = Memory {
            stored: RunMemory::default(),
            now: RunMemory::default(),
        };
        let begin = Input::Begin {
            standing,
            append: None,
        };
        let ended = driver.run(agent, memory, begin, &options).await;
        let replies = layer.replies.lock().expect("nobody panicked").clone();
        (ended, replies)
    }
}

/// A run as a store hands it out.
async fn claimed() -> Claimed {
    let clock = Arc::new(ManualClock::default());
    let stores = Arc::new(MemoryStore::new(Arc::clone(&clock) as _)).stores();
    let fixture = Fixture::new(stores, clock);
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    let claimed = fixture.claim(run.id, owner(1)).await;
    claimed.expect("nothing stands before the claim")
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        parts: EngineParts {
            owner: owner(1),
            runs: Arc::new(MockRunStore::new()),
            ids: Arc::new(MockIds::new()),
            providers: BTreeMap::new(),
            tools: Registry::new(),
            sink: Arc::new(MockEventSink::new()),
            telemetry: Arc::new(MockTelemetry::new()),
            signals: Arc::new(Signals::new(Arc::new(Alone))),
        },
        settings: settings(),
        leases: Leases::new(Duration::ZERO),
        gate: ProviderGate::default(),
        permits: Arc::new(Semaphore::new(1)),
        executors: Executors::new(Arc::new(PresentRuntime)),
        tasks: Arc::new(PresentRuntime),
        took_back: false.into(),
        draining: CancellationToken::new(),
        aborting: CancellationToken::new(),
        stopped: CancellationToken::new(),
    })
}

fn settings() -> EngineSettings {
    EngineSettings {
        workers: 1,
        lease_ttl: Duration::from_mins(1),
        heartbeat: Duration::from_secs(10),
        reclaim_interval: Duration::from_secs(10),
        poll_interval: Duration::from_secs(10),
        max_stalled: 5,
        running_per_tenant: 0,
        limits: RunLimits {
            max_iterations: 5,
            tool_timeout: Duration::from_secs(1),
            deadline: Duration::from_mins(1),
        },
        tool_concurrency: 2,
        tool_output_max_bytes: 1000,
        repeat_call_threshold: 3,
        retry: RetryPolicy {
            max_retries: 1,
            inline_wait: Duration::from_secs(1),
        },
        retention: None,
        exclusive: false,
    }
}

/// The store's answer to a write under `lease`.
pub(super) async fn written(status: RunStatus) -> Written {
    Written {
        status,
        standing: claimed().await.standing,
        events: Vec::new(),
    }
}

pub(super) fn says(text: &str) -> Vec<StreamEvent> {
    let text = text.to_owned();
    let stop = ModelStop::Answer(StopReason::EndTurn);
    vec![
        StreamEvent::Text { index: 0, text },
        StreamEvent::Stop(stop),
    ]
}

pub(super) fn asks(tool: &str) -> Vec<StreamEvent> {
    let call = StreamEvent::ToolUse {
        index: 0,
        id: "c1".to_owned(),
        name: tool.to_owned(),
    };
    let stop = ModelStop::Answer(StopReason::ToolUse);
    vec![call, StreamEvent::Stop(stop)]
}

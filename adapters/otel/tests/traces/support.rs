//! An engine over the in-memory store whose spans are kept, and what is asked of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hango_application::engine::{Engine, EngineParts, EngineSettings};
use hango_application::live::LiveEvents;
use hango_application::signals::Signals;
use hango_conformance::{Fixture, ManualClock, Place, USAGE, owner};
use hango_domain::agent::{AgentLimits, AgentSettings, RunLimits};
use hango_domain::conversation::StopReason;
use hango_domain::model::{AnswerNames, ModelCall, ModelFailure, Stop, StreamEvent};
use hango_domain::retry::RetryPolicy;
use hango_domain::run::Run;
use hango_domain::tool::{Registry, schema};
use hango_domain::{RunId, SpanId, Timestamp, TraceId};
use hango_memory::MemoryStore;
use hango_otel::Pipeline;
use hango_ports::provider::{AnswerStream, ServerAddress};
use hango_ports::tool::{Idempotency, Invocation, Tool, ToolDef, ToolResult};
use hango_ports::wake_up::Alone;
use hango_ports::{Clock, Ids, Provider};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SpanData};
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

/// What nobody may find in a trace without asking for content.
pub(crate) const CANARY: &str = "canary-7f3a";

/// See the module.
pub(crate) struct World {
    pub(crate) fixture: Arc<Fixture>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) place: Place,
    pub(crate) provider: Arc<Scripted>,
    pub(crate) signals: Arc<Signals>,
    pipeline: Pipeline,
    exporter: InMemorySpanExporter,
    content: bool,
    stores: hango_ports::Stores,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// With an agent whose settings are changed.
    pub(crate) async fn with(change: impl FnOnce(&mut AgentSettings)) -> Self {
        let clock = Arc::new(ManualClock::default());
        let moving = Moving {
            manual: Arc::clone(&clock),
            since: Instant::now(),
        };
        let stores = Arc::new(MemoryStore::new(Arc::new(moving))).stores();
        let fixture = Arc::new(Fixture::new(stores.clone(), Arc::clone(&clock)));
        let place = place(&fixture, change).await;
        let exporter = InMemorySpanExporter::default();
        let pipeline = Pipeline::to(exporter.clone(), Resource::builder_empty().build());
        Self {
            fixture,
            clock,
            place,
            provider: Arc::default(),
            signals: Arc::new(Signals::new(Arc::new(Alone))),
            pipeline,
            exporter,
            content: false,
            stores,
        }
    }

    /// The same with what people and models say on spans.
    pub(crate) fn telling_content(self) -> Self {
        let content = true;
        Self { content, ..self }
    }

    /// Executes what is queued until the run has ended, and says what was exported then.
    pub(crate) async fn trace_of(&self, run: RunId) -> Trace {
        let engine = self.start();
        self.ended(run).await;
        engine.drain(Duration::from_mins(1)).await;
        self.exported()
    }

    pub(crate) fn start(&self) -> Engine {
        let mut tools = Registry::new();
        for tool in [Said::Well, Said::Badly, Said::Slowly] {
            tools.register(Arc::new(tool)).expect("a new name");
        }
        let provider = Arc::clone(&self.provider) as Arc<dyn Provider>;
        let parts = EngineParts {
            owner: owner(1),
            runs: Arc::clone(&self.stores.runs),
            ids: Arc::new(FixtureIds(Arc::clone(&self.fixture))),
            providers: BTreeMap::from([("scripted".to_owned(), provider)]),
            tools,
            sink: Arc::new(LiveEvents::default()),
            telemetry: Arc::new(self.pipeline.traces(self.content)),
            signals: Arc::clone(&self.signals),
        };
        Engine::start(parts, settings()).expect("there is a thread")
    }

    /// Waits until the run has ended.
    pub(crate) async fn ended(&self, run: RunId) -> Run {
        for _ in 0..10_000 {
            let now = self.fixture.on_record(&self.place, run).await.run;
            if now.state.status().is_terminal() {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the run does not end")
    }

    /// What was exported so far.
    pub(crate) fn exported(&self) -> Trace {
        self.pipeline.flush();
        let spans = self.exporter.get_finished_spans();
        let spans = spans.expect("nobody panicked");
        Trace(spans)
    }
}

/// The spans of a test.
pub(crate) struct Trace(pub(crate) Vec<SpanData>);

impl Trace {
    /// The only span of that name.
    pub(crate) fn one(&self, name: &str) -> &SpanData {
        let found = self.all(name);
        let [span] = found.as_slice() else {
            panic!("{name}: {:#?}", self.names());
        };
        span
    }

    /// Those of that name, by their beginning.
    pub(crate) fn all(&self, name: &str) -> Vec<&SpanData> {
        let named = self.0.iter().filter(|span| span.name == name);
        let mut found: Vec<_> = named.collect();
        found.sort_by_key(|span| span.start_time);
        found
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|span| &*span.name).collect()
    }
}

/// An attribute as text; `None` if it is not there.
pub(crate) fn attribute(span: &SpanData, key: &str) -> Option<String> {
    of(&span.attributes, key).map(ToString::to_string)
}

/// An attribute.
pub(crate) fn of<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let mut found = attributes.iter().filter(|it| it.key.as_str() == key);
    let first = found.next().map(|it| &it.value);
    assert!(found.next().is_none(), "{key} is there twice");
    first
}

/// The keys of a span, sorted.
pub(crate) fn keys(span: &SpanData) -> Vec<&str> {
    let mut keys: Vec<_> = span.attributes.iter().map(|it| it.key.as_str()).collect();
    keys.sort_unstable();
    keys
}

/// A provider that answers as it is told, one answer after the other.
#[derive(Default)]
pub(crate) struct Scripted(Mutex<VecDeque<Vec<Piece>>>);

type Piece = Result<StreamEvent, ModelFailure>;

impl Scripted {
    pub(crate) fn then(&self, answer: Vec<Piece>) -> &Self {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        script.push_back(answer);
        self
    }
}

#[async_trait]
impl Provider for Scripted {
    fn kind(&self) -> &'static str {
        "openai"
    }

    fn server(&self) -> Option<ServerAddress> {
        Some(ServerAddress {
            host: "127.0.0.1".to_owned(),
            port: 8080,
        })
    }

    async fn stream(&self, _: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match script.pop_front() {
            // Nothing comes any more.
            None => Ok(stream::pending().boxed()),
            Some(mut answer) if matches!(answer.first(), Some(Err(_))) => {
                Err(answer.remove(0).expect_err("it was looked at"))
            }
            Some(answer) => Ok(stream::iter(answer).boxed()),
        }
    }
}

/// An answer that asks for nothing.
pub(crate) fn says(text: &str) -> Vec<Piece> {
    let text = text.to_owned();
    answer(
        vec![StreamEvent::Text { index: 0, text }],
        StopReason::EndTurn,
    )
}

/// An answer that asks for one call of a tool.
pub(crate) fn asks(id: &str, tool: &str) -> Vec<Piece> {
    let call = StreamEvent::ToolUse {
        index: 0,
        id: id.to_owned(),
        name: tool.to_owned(),
    };
    let json = json!({ "text": CANARY }).to_string();
    let input = StreamEvent::ToolInput { index: 0, json };
    answer(vec![call, input], StopReason::ToolUse)
}

fn answer(said: Vec<StreamEvent>, stop: StopReason) -> Vec<Piece> {
    let names = StreamEvent::Named(AnswerNames {
        id: Some("resp_1".to_owned()),
        model: Some("model-2026".to_owned()),
        finish_reason: Some("raw".to_owned()),
    });
    let end = [
        StreamEvent::Usage(USAGE),
        StreamEvent::Stop(Stop::Answer(stop)),
    ];
    [names].into_iter().chain(said).chain(end).map(Ok).collect()
}

/// Tools that answer well, badly, and not at all.
#[derive(Clone, Copy)]
enum Said {
    Well,
    Badly,
    Slowly,
}

#[async_trait]
impl Tool for Said {
    fn definition(&self) -> ToolDef {
        let name = match self {
            Self::Well => "well",
            Self::Badly => "badly",
            Self::Slowly => "slowly",
        };
        ToolDef {
            name: name.to_owned(),
            description: format!("Answers {name}."),
            parameters: schema::object([]),
        }
    }

    fn idempotency(&self) -> Idempotency {
        Idempotency::Unsafe
    }

    async fn execute(&self, _: Invocation) -> ToolResult {
        match self {
            Self::Well => ToolResult::ok(CANARY),
            Self::Badly => ToolResult::error(CANARY),
            Self::Slowly => std::future::pending().await,
        }
    }
}

/// The manual clock, and tokio's besides.
struct Moving {
    manual: Arc<ManualClock>,
    since: Instant,
}

impl Clock for Moving {
    fn now(&self) -> Timestamp {
        self.manual.now().plus(self.since.elapsed())
    }
}

struct FixtureIds(Arc<Fixture>);

impl Ids for FixtureIds {
    fn uuid(&self) -> Uuid {
        self.0.uuid()
    }

    fn secret(&self) -> [u8; 32] {
        [7; 32]
    }

    fn trace_id(&self) -> TraceId {
        TraceId([7; 16])
    }

    fn span_id(&self) -> SpanId {
        SpanId([7; 8])
    }
}

fn settings() -> EngineSettings {
    EngineSettings {
        workers: 4,
        lease_ttl: Duration::from_hours(48),
        heartbeat: Duration::from_hours(1),
        reclaim_interval: Duration::from_secs(5),
        poll_interval: Duration::from_secs(1),
        max_stalled: 2,
        running_per_tenant: 0,
        limits: RunLimits {
            max_iterations: 10,
            tool_timeout: Duration::from_secs(10),
            deadline: Duration::from_mins(10),
        },
        tool_concurrency: 4,
        tool_output_max_bytes: 1024,
        repeat_call_threshold: 3,
        retry: RetryPolicy {
            max_retries: 2,
            inline_wait: Duration::from_secs(10),
        },
        retention: None,
        exclusive: false,
    }
}

async fn place(fixture: &Fixture, change: impl FnOnce(&mut AgentSettings)) -> Place {
    let owner = fixture.tenant().await;
    let mut agent = fixture.new_agent(&owner);
    "Support bot".clone_into(&mut agent.name);
    "scripted".clone_into(&mut agent.settings.provider);
    "model-x".clone_into(&mut agent.settings.model);
    CANARY.clone_into(&mut agent.settings.system_prompt);
    agent.settings.tools = Vec::new();
    agent.settings.limits = AgentLimits::default();
    agent.settings.middleware.clear();
    change(&mut agent.settings);
    let audit = fixture.audit(&owner, "agent.create", agent.id.0);
    let agent = fixture.stores.agents.create(agent, audit).await;
    let agent = agent.expect("a new agent is added");
    let session = fixture.session(&owner, agent.id).await;
    Place {
        tenant: owner.tenant,
        owner,
        agent,
        session,
    }
}

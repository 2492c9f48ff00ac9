//! Every name that leaves this crate: one place, so that dashboards, alerts and tests can be held to it.
//!
//! The `gen_ai` names are those of the semantic conventions as of October 2026. They are written here and not
//! taken from a crate of constants: the conventions moved, and all of those there are marked as old.

/// Names of spans. Where one names what it is about, this is its beginning.
pub mod span {
    /// A run; the agent's name follows.
    pub const INVOKE_AGENT: &str = "invoke_agent";
    /// A turn.
    pub const TURN: &str = "chain turn";
    /// A model call; the model's name follows.
    pub const CHAT: &str = "chat";
    /// A tool call; the tool's name follows.
    pub const EXECUTE_TOOL: &str = "execute_tool";
    /// The hooks before a run.
    pub const BEFORE_RUN: &str = "agent.before_run";
    /// One of them; the layer's name follows.
    pub const HOOK: &str = "before_run";
    /// A request that took no route, or whose method is none of HTTP's own.
    pub const HTTP: &str = "HTTP";
}

/// Names of span events.
pub mod event {
    /// A run was claimed.
    pub const RUN_CLAIMED: &str = "run.claimed";
    /// The sweep took a run back.
    pub const RUN_RECLAIMED: &str = "run.reclaimed";
    /// The layers of a run.
    pub const MIDDLEWARE_STACK: &str = "agent.middleware_stack";
    /// The plan changed.
    pub const TODOS_UPDATED: &str = "agent.todos_updated";
    /// A layer rewrote a call.
    pub const REQUEST_REWRITTEN: &str = "middleware.request_rewritten";
    /// A layer answered a call itself.
    pub const SHORT_CIRCUITED: &str = "middleware.short_circuited";
    /// A layer ran a call again.
    pub const RETRIED: &str = "middleware.retried";
    /// A call was made too often.
    pub const REPEAT_CALL_BLOCKED: &str = "middleware.repeat_call_blocked";
    /// What a layer stored is gone.
    pub const STATE_MISSING: &str = "middleware.state_missing";
}

/// Keys of attributes.
pub mod key {
    /// The run.
    pub const RUN_ID: &str = "hango.run.id";
    /// Its tenant.
    pub const TENANT_ID: &str = "hango.tenant.id";
    /// Its agent.
    pub const AGENT_ID: &str = "hango.agent.id";
    /// Its conversation.
    pub const SESSION_ID: &str = "hango.session.id";
    /// The queue it waited in.
    pub const LANE: &str = "hango.lane";
    /// A turn's number, counting from 1.
    pub const TURN: &str = "hango.turn";
    /// A claim's number, counting from 1.
    pub const ATTEMPT: &str = "hango.attempt";
    /// How a run ended.
    pub const RUN_STATE: &str = "hango.run.state";
    /// Why its model stopped last.
    pub const RUN_STOP_REASON: &str = "hango.run.stop_reason";
    /// Its completed model calls.
    pub const RUN_ITERATIONS: &str = "hango.run.iterations";
    /// Its claims.
    pub const RUN_ATTEMPTS: &str = "hango.run.attempts";
    /// What it read, in tokens.
    pub const RUN_INPUT_TOKENS: &str = "hango.run.usage.input_tokens";
    /// What it wrote, in tokens.
    pub const RUN_OUTPUT_TOKENS: &str = "hango.run.usage.output_tokens";
    /// How long it waited, in milliseconds.
    pub const RUN_QUEUE_WAIT_MS: &str = "hango.run.queue_wait_ms";
    /// Whether a tool was executed.
    pub const TOOL_EXECUTED: &str = "hango.tool.executed";
    /// A layer.
    pub const MIDDLEWARE_NAME: &str = "hango.middleware.name";
    /// Layers in their order.
    pub const MIDDLEWARE_NAMES: &str = "hango.middleware.names";
    /// Why a layer did what it did.
    pub const REASON: &str = "hango.reason";
    /// A process that held a run.
    pub const OWNER_ID: &str = "hango.owner.id";
    /// The process that held it before.
    pub const PREVIOUS_OWNER_ID: &str = "hango.owner.previous_id";
    /// Until when it held.
    pub const LEASE_EXPIRES_AT: &str = "hango.lease.expires_at";
    /// The last completed turn.
    pub const RESUME_TURN: &str = "hango.resume_turn";
    /// Items of a plan that are not begun.
    pub const TODOS_PENDING: &str = "hango.todos.pending";
    /// Those that are being done.
    pub const TODOS_IN_PROGRESS: &str = "hango.todos.in_progress";
    /// Those that are done.
    pub const TODOS_COMPLETED: &str = "hango.todos.completed";
    /// Whether a claim was made.
    pub const OUTCOME: &str = "outcome";
    /// Where a run stands.
    pub const STATE: &str = "state";
    /// Which kind of telemetry.
    pub const SIGNAL: &str = "signal";
    /// Why it was dropped.
    pub const DROP_REASON: &str = "reason";
    /// Which tokens: those that were read, or written.
    pub const TOKEN_TYPE: &str = "gen_ai.token.type";
    /// What a link leads to.
    pub const LINK_KIND: &str = "hango.link.kind";

    /// What went wrong, in one word of few.
    pub const ERROR_TYPE: &str = "error.type";
    /// The conversation, for consumers that know no other key.
    pub const GENERAL_SESSION_ID: &str = "session.id";
    /// The creator, likewise.
    pub const GENERAL_USER_ID: &str = "user.id";
    /// Where a server is.
    pub const SERVER_ADDRESS: &str = "server.address";
    /// Its port.
    pub const SERVER_PORT: &str = "server.port";
    /// A request's method.
    pub const HTTP_METHOD: &str = "http.request.method";
    /// The route it took.
    pub const HTTP_ROUTE: &str = "http.route";
    /// The status of its answer.
    pub const HTTP_STATUS: &str = "http.response.status_code";

    /// The kind of an operation.
    pub const OPERATION_NAME: &str = "gen_ai.operation.name";
    /// An agent's name.
    pub const AGENT_NAME: &str = "gen_ai.agent.name";
    /// An agent's id.
    pub const GEN_AI_AGENT_ID: &str = "gen_ai.agent.id";
    /// A conversation.
    pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
    /// The kind of a provider.
    pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
    /// The model that was asked for.
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// Whether the answer was streamed.
    pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
    /// The most tokens that were asked for.
    pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
    /// The temperature that was asked for.
    pub const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
    /// The provider's id of an answer.
    pub const RESPONSE_ID: &str = "gen_ai.response.id";
    /// The model that answered.
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    /// Why it stopped.
    pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    /// When its answer began, in seconds.
    pub const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
    /// What a call read, in tokens, cached ones included.
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// What it wrote, in tokens.
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// What of the input came from a cache.
    pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
    /// What of the input was put into one.
    pub const CACHE_CREATION_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
    /// A tool's name.
    pub const TOOL_NAME: &str = "gen_ai.tool.name";
    /// The model's id of a call.
    pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
    /// A tool's kind.
    pub const TOOL_TYPE: &str = "gen_ai.tool.type";
    /// What a model is told of a tool.
    pub const TOOL_DESCRIPTION: &str = "gen_ai.tool.description";
    /// A call's arguments: content.
    pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    /// Its result: content.
    pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
    /// The tools that were offered: content.
    pub const TOOL_DEFINITIONS: &str = "gen_ai.tool.definitions";
    /// The system prompt: content.
    pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
    /// What a model or an agent was told: content.
    pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
    /// What it answered: content.
    pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";

    /// What Langfuse takes a span for.
    pub const OBSERVATION_TYPE: &str = "langfuse.observation.type";
    /// What a call cost, as Langfuse counts it: a JSON object of buckets that do not overlap.
    pub const USAGE_DETAILS: &str = "langfuse.observation.usage_details";
    /// When an answer began.
    pub const COMPLETION_START_TIME: &str = "langfuse.observation.completion_start_time";
    /// Items of a run's plan.
    pub const TODOS_TOTAL: &str = "langfuse.observation.metadata.todos_total";
    /// Those that are done.
    pub const TODOS_DONE: &str = "langfuse.observation.metadata.todos_completed";
    /// A trace's name.
    pub const TRACE_NAME: &str = "langfuse.trace.name";
    /// A trace's conversation.
    pub const TRACE_SESSION_ID: &str = "langfuse.session.id";
    /// A trace's creator.
    pub const TRACE_USER_ID: &str = "langfuse.user.id";
    /// A trace's tags.
    pub const TRACE_TAGS: &str = "langfuse.trace.tags";
    /// A trace's tenant.
    pub const TRACE_TENANT_ID: &str = "langfuse.trace.metadata.tenant_id";
    /// A trace's agent.
    pub const TRACE_AGENT_ID: &str = "langfuse.trace.metadata.agent_id";
    /// A trace's run.
    pub const TRACE_RUN_ID: &str = "langfuse.trace.metadata.run_id";
    /// What Phoenix takes a span for.
    pub const OPENINFERENCE_KIND: &str = "openinference.span.kind";

    /// A service.
    pub const SERVICE_NAME: &str = "service.name";
    /// Its version.
    pub const SERVICE_VERSION: &str = "service.version";
    /// One process of it.
    pub const SERVICE_INSTANCE_ID: &str = "service.instance.id";
}

/// Values that are always the same.
pub mod value {
    /// What an unnamed service is called.
    pub const SERVICE: &str = "hango";
    /// The instrumentation's name.
    pub const SCOPE: &str = "hango";
    /// What a root's link leads to.
    pub const CREATED_BY: &str = "created_by";
    /// The kind of every tool.
    pub const FUNCTION: &str = "function";
    /// A model call.
    pub const CHAT: &str = "chat";
    /// A claim that was made.
    pub const WON: &str = "won";
    /// A claim that somebody else made.
    pub const LOST: &str = "lost";
    /// Tokens that were read.
    pub const INPUT: &str = "input";
    /// Tokens that were written.
    pub const OUTPUT: &str = "output";
    /// Spans, where telemetry was dropped.
    pub const TRACES: &str = "traces";
    /// A tool that nobody registered.
    pub const OTHER: &str = "_OTHER";
    /// All tenants that are not named.
    pub const OTHER_TENANTS: &str = "_other";
    /// A method that HTTP does not name.
    pub const OTHER_METHOD: &str = "_OTHER";
}

/// Names of metrics.
pub mod metric {
    /// How long a run took, from its first claim to its end.
    pub const INVOKE_AGENT_DURATION: &str = "gen_ai.invoke_agent.duration";
    /// How many model calls of a run were completed.
    pub const INVOKE_AGENT_INFERENCE_CALLS: &str = "gen_ai.invoke_agent.inference_calls";
    /// How many tool calls a run made.
    pub const INVOKE_AGENT_TOOL_CALLS: &str = "gen_ai.invoke_agent.tool_calls";
    /// How long a tool call took.
    pub const EXECUTE_TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
    /// How long a try of a model call took.
    pub const OPERATION_DURATION: &str = "gen_ai.client.operation.duration";
    /// When its answer began.
    pub const OPERATION_FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
    /// What it cost, in tokens.
    pub const TOKEN_USAGE: &str = "gen_ai.client.token.usage";
    /// Connections of the store that are in use.
    pub const DB_POOL_IN_USE: &str = "hango.db.pool.in_use";
    /// The most that there are.
    pub const DB_POOL_LIMIT: &str = "hango.db.pool.limit";
    /// How long a request took.
    pub const HTTP_REQUEST_DURATION: &str = "http.server.request.duration";
    /// Runs that have not ended, by where they stand.
    pub const RUNS_BY_STATE: &str = "hango.runs.by_state";
    /// Runs that wait.
    pub const QUEUE_DEPTH: &str = "hango.run.queue_depth";
    /// How long the oldest run waits that could be claimed.
    pub const OLDEST_QUEUED_AGE: &str = "hango.run.oldest_queued_age";
    /// How long ago the oldest run that is running was claimed first.
    pub const OLDEST_RUNNING_AGE: &str = "hango.run.oldest_running_age";
    /// How long a run waited for its first claim.
    pub const QUEUE_WAIT: &str = "hango.run.queue_wait.duration";
    /// Workers of this process that execute a run.
    pub const WORKERS_BUSY: &str = "hango.run.workers.busy";
    /// All of its workers.
    pub const WORKERS_LIMIT: &str = "hango.run.workers.limit";
    /// Claims, won and lost.
    pub const CLAIMS: &str = "hango.run.claims";
    /// Runs that were taken back from a process that fell silent.
    pub const RECLAIMED: &str = "hango.run.reclaimed";
    /// Turns that a run completed.
    pub const ITERATIONS: &str = "hango.run.iterations";
    /// Tool calls that failed.
    pub const TOOL_ERRORS: &str = "hango.tool.errors";
    /// How long a layer's hook before a run took.
    pub const BEFORE_RUN_DURATION: &str = "hango.middleware.before_run.duration";
    /// Tool calls that a layer answered itself.
    pub const TOOL_SHORT_CIRCUITS: &str = "hango.middleware.tool_short_circuits";
    /// Tool calls that were made too often.
    pub const REPEAT_BLOCKED: &str = "hango.middleware.repeat_blocked";
    /// Telemetry that never arrived.
    pub const DROPPED: &str = "hango.telemetry.dropped";

    /// Every metric.
    pub const ALL: [&str; 25] = [
        INVOKE_AGENT_DURATION,
        INVOKE_AGENT_INFERENCE_CALLS,
        INVOKE_AGENT_TOOL_CALLS,
        EXECUTE_TOOL_DURATION,
        OPERATION_DURATION,
        OPERATION_FIRST_CHUNK,
        TOKEN_USAGE,
        DB_POOL_IN_USE,
        DB_POOL_LIMIT,
        HTTP_REQUEST_DURATION,
        RUNS_BY_STATE,
        QUEUE_DEPTH,
        OLDEST_QUEUED_AGE,
        OLDEST_RUNNING_AGE,
        QUEUE_WAIT,
        WORKERS_BUSY,
        WORKERS_LIMIT,
        CLAIMS,
        RECLAIMED,
        ITERATIONS,
        TOOL_ERRORS,
        BEFORE_RUN_DURATION,
        TOOL_SHORT_CIRCUITS,
        REPEAT_BLOCKED,
        DROPPED,
    ];
}

/// Where the buckets of histograms end.
pub mod buckets {
    /// Runs, in seconds; how old those are that take longer the gauges tell.
    pub const RUN: [f64; 13] = [
        0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6,
    ];
    /// Calls of models and tools, in seconds.
    pub const CALL: [f64; 14] = [
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    ];
    /// Calls of a run.
    pub const COUNT: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
    /// Turns of a run.
    pub const ITERATIONS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 32.0];
    /// Tokens of a call.
    pub const TOKENS: [f64; 14] = [
        1.0,
        4.0,
        16.0,
        64.0,
        256.0,
        1024.0,
        4096.0,
        16384.0,
        65536.0,
        262_144.0,
        1_048_576.0,
        4_194_304.0,
        16_777_216.0,
        67_108_864.0,
    ];
    /// Requests, in seconds.
    pub const REQUEST: [f64; 11] = [
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ];
    /// Waiting, in seconds.
    pub const WAIT: [f64; 12] = [
        0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0,
    ];
    /// Hooks, in seconds.
    pub const HOOK: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0];
}

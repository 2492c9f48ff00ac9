//! The table: every setting's name, default, meaning and type in one place, and nowhere else.

use std::net::SocketAddr;
use std::time::Duration;

use hango_application::use_cases::{AdminToken, KeyText};
use hango_domain::retention::Retention;
use hango_otel::{Headers, ResourceAttributes};
use hango_tools::outbound::{AllowedHost, Network};
use secrecy::SecretString;
use tracing_subscriber::filter::Targets;
use url::Url;

use super::database::Database;
use super::parse::{
    address, admin_token, api_key, duration, http_url, list, number, optional,
    repeat_call_threshold, retention, secret, span, switch, text, typed,
};
use super::problems::Problems;
use super::telemetry::{otel_switch, otlp, sampler};
use super::values::Fallback::{Text, ThirdOf};
use super::values::{Setting, Show, Values};
use crate::logging::{self, LogFormat};

/// Unset unless somebody says otherwise.
pub(super) const UNSET: super::values::Fallback = Text("");

/// Makes the table, and the record of what is read by it, out of rows of
/// `meaning, field: type = variable, default, how it may be shown, how it reads`.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty =
        $name:literal, $fallback:expr, $show:ident, $parse:expr;)*) => {
        /// What an operator can set, as it holds. Without `Debug`: URLs may hold secrets too.
        #[derive(Clone)]
        pub(crate) struct Settings {
            $($(#[doc = $doc])+ pub(crate) $field: $type,)*
        }

        /// The settings that [`Settings`] holds.
        pub(super) const SETTINGS: &[Setting] = &[$(Setting {
            name: $name,
            fallback: $fallback,
            show: Show::$show,
            doc: concat!($($doc),+),
        }),*];

        impl Settings {
            /// Reads them all; `None` when `problems` says of one that it cannot be read.
            pub(super) fn read(values: &Values, problems: &mut Problems) -> Option<Self> {
                $(let $field = values.read($name, $parse, problems);)*
                Some(Self { $($field: $field?,)* })
            }
        }
    };
}

settings! {
    /// Where API and console listen; port 0 takes a free one.
    listen: SocketAddr = "HANGO_LISTEN", Text("127.0.0.1:8080"), Plain, address;
    /// The store: sqlite:// and a path, for one process; or postgres://…, for any number.
    database: Database =
        "HANGO_DATABASE_URL", Text("sqlite://hango-data/hango.db"), Url, Database::parse;
    /// PostgreSQL itself, where the other URL goes through a pooler; unset is the same one.
    database_direct: Option<Database> =
        "HANGO_DATABASE_DIRECT_URL", UNSET, Url, optional(Database::parse);
    /// Connections to the store, all of them; at least 3.
    database_max_connections: u32 =
        "HANGO_DATABASE_MAX_CONNECTIONS", Text("10"), Plain, number(3, 10_000);
    /// How long ended runs, and sessions that are idle, are kept, at least 1m; unset keeps everything.
    retention: Option<Retention> = "HANGO_RETENTION", UNSET, Plain, optional(retention);
    /// Requests a second of one key, in each process; 0 for no limit.
    rate_limit_per_key: u32 = "HANGO_RATE_LIMIT_PER_KEY", Text("0"), Plain, number(0, 1_000_000);
    /// Requests a second of one tenant, in each process; 0 for no limit.
    rate_limit_per_tenant: u32 =
        "HANGO_RATE_LIMIT_PER_TENANT", Text("0"), Plain, number(0, 1_000_000);
    /// Whether serve brings the schema up to date.
    auto_migrate: bool = "HANGO_AUTO_MIGRATE", Text("true"), Plain, switch;
    /// Opens the calls that make and suspend tenants, 32 characters or more; unset, they do not exist.
    admin_token: Option<AdminToken> = "HANGO_ADMIN_TOKEN", UNSET, Secret, optional(admin_token);
    /// A whole key of tenant default, which is made at start if it is not there.
    bootstrap_api_key: Option<KeyText> =
        "HANGO_BOOTSTRAP_API_KEY", UNSET, Secret, optional(api_key);
    /// Runs that this process executes at once; they mostly wait.
    run_workers: usize = "HANGO_RUN_WORKERS", Text("256"), Plain, number(1, 100_000);
    /// How long a claim holds without being renewed.
    run_lease_ttl: Duration = "HANGO_RUN_LEASE_TTL", Text("90s"), Plain, span;
    /// How often a claim is renewed; below half of the lease.
    run_heartbeat_interval: Duration =
        "HANGO_RUN_HEARTBEAT_INTERVAL", ThirdOf("HANGO_RUN_LEASE_TTL"), Plain, span;
    /// How often claims that ran out are looked for.
    run_reclaim_interval: Duration =
        "HANGO_RUN_RECLAIM_INTERVAL", ThirdOf("HANGO_RUN_LEASE_TTL"), Plain, span;
    /// How often queued runs are looked for; notifications make it faster, never unnecessary.
    run_poll_interval: Duration = "HANGO_RUN_POLL_INTERVAL", Text("1s"), Plain, span;
    /// Model calls of a run.
    max_iterations: u32 = "HANGO_MAX_ITERATIONS", Text("20"), Plain, number(1, 10_000);
    /// Claims of one turn with no turn completed until the run fails; 0 never gives up.
    max_stalled_attempts: u32 =
        "HANGO_MAX_STALLED_ATTEMPTS", Text("5"), Plain, number(0, 10_000);
    /// Runs that may wait in one session.
    max_queued_runs_per_session: u32 =
        "HANGO_MAX_QUEUED_RUNS_PER_SESSION", Text("16"), Plain, number(1, 1_000_000);
    /// Runs of one tenant that may be executed at once; 0 for no cap.
    max_running_per_tenant: u32 =
        "HANGO_MAX_RUNNING_PER_TENANT", Text("0"), Plain, number(0, 1_000_000);
    /// One tool call.
    tool_timeout: Duration = "HANGO_TOOL_TIMEOUT", Text("30s"), Plain, span;
    /// Tool calls of one answer at a time; results keep the order of the calls.
    tool_concurrency: usize = "HANGO_TOOL_CONCURRENCY", Text("4"), Plain, number(1, 1000);
    /// What a model sees of one tool's result.
    tool_output_max_bytes: usize =
        "HANGO_TOOL_OUTPUT_MAX_BYTES", Text("262144"), Plain, number(1024, 1 << 30);
    /// The whole run, from its first start, across attempts.
    run_deadline: Duration = "HANGO_RUN_DEADLINE", Text("30m"), Plain, span;
    /// How long a shutdown waits for turns to end; should hold a full one.
    drain_timeout: Duration = "HANGO_DRAIN_TIMEOUT", Text("120s"), Plain, duration;
    /// Equal tool calls of one run, at which the call is not made any more; agents may set their own.
    repeat_call_threshold: u32 =
        "HANGO_REPEAT_CALL_THRESHOLD", Text("3"), Plain, repeat_call_threshold;
    /// Hosts that models may fetch from, separated by commas: good.example, *.good.example, either with
    /// :port; empty for none.
    http_fetch_allowed_hosts: Vec<AllowedHost> =
        "HANGO_HTTP_FETCH_ALLOWED_HOSTS", UNSET, Plain, list(typed);
    /// Private networks that models may fetch from besides public addresses, as 10.1.0.0/16, separated by
    /// commas; empty for none.
    http_fetch_allowed_networks: Vec<Network> =
        "HANGO_HTTP_FETCH_ALLOWED_NETWORKS", UNSET, Plain, list(typed);
    /// How long a provider may take to be connected.
    provider_connect_timeout: Duration =
        "HANGO_PROVIDER_CONNECT_TIMEOUT", Text("10s"), Plain, span;
    /// How long a provider may take to begin its answer.
    provider_first_byte_timeout: Duration =
        "HANGO_PROVIDER_FIRST_BYTE_TIMEOUT", Text("120s"), Plain, span;
    /// How long a provider may be silent within its answer.
    provider_idle_timeout: Duration = "HANGO_PROVIDER_IDLE_TIMEOUT", Text("60s"), Plain, span;
    /// Tries beyond the first, of one model call.
    provider_max_retries: u32 = "HANGO_PROVIDER_MAX_RETRIES", Text("4"), Plain, number(0, 100);
    /// How long a run waits for a provider in its slot; longer waits give it back.
    provider_inline_wait: Duration = "HANGO_PROVIDER_INLINE_WAIT", Text("10s"), Plain, duration;
    /// The largest body of a request.
    max_body_bytes: usize = "HANGO_MAX_BODY_BYTES", Text("1048576"), Plain, number(1024, 1 << 30);
    /// Which log lines are written: a level, or target=level separated by commas.
    log: Targets = "HANGO_LOG", Text("info"), Plain, logging::filter;
    /// json or pretty; unset is json, and pretty on a terminal.
    log_format: Option<LogFormat> = "HANGO_LOG_FORMAT", UNSET, Plain, optional(logging::format);
    /// The key of provider anthropic, which exists when this or its base URL is set.
    anthropic_api_key: Option<SecretString> = "ANTHROPIC_API_KEY", UNSET, Secret, optional(secret);
    /// Where provider anthropic is, without /v1; unset is the public API.
    anthropic_base_url: Option<Url> = "HANGO_ANTHROPIC_BASE_URL", UNSET, Url, optional(http_url);
    /// The key of provider openai, which exists when this or its base URL is set.
    openai_api_key: Option<SecretString> = "OPENAI_API_KEY", UNSET, Secret, optional(secret);
    /// Where provider openai is, /v1 included; unset is the public API.
    openai_base_url: Option<Url> = "HANGO_OPENAI_BASE_URL", UNSET, Url, optional(http_url);
    /// Where /metrics listens by itself; unset, it is where the API is, if that is a loopback address.
    metrics_listen: Option<SocketAddr> = "HANGO_METRICS_LISTEN", UNSET, Plain, optional(address);
    /// Whether metrics name tenants.
    metrics_tenant_label: bool = "HANGO_METRICS_TENANT_LABEL", Text("true"), Plain, switch;
    /// Whether spans hold prompts, answers, arguments and results.
    trace_llm_content: bool = "HANGO_TRACE_LLM_CONTENT", Text("false"), Plain, switch;
    /// Where spans are sent, as OpenTelemetry says: OTLP over HTTP, /v1/traces is added; unset sends nothing.
    otlp_endpoint: Option<Url> = "OTEL_EXPORTER_OTLP_ENDPOINT", UNSET, Url, optional(http_url);
    /// Headers of what is sent, as OpenTelemetry says: name=value, separated by commas.
    otlp_headers: Headers = "OTEL_EXPORTER_OTLP_HEADERS", UNSET, Secret, otlp(Headers::parse);
    /// This service's name, as OpenTelemetry says; unset is hango.
    otel_service_name: Option<String> = "OTEL_SERVICE_NAME", UNSET, Plain, optional(text);
    /// Attributes of this service, as OpenTelemetry says: key=value, separated by commas.
    otel_resource: ResourceAttributes =
        "OTEL_RESOURCE_ATTRIBUTES", UNSET, Plain, otlp(ResourceAttributes::parse);
    /// Whether nothing is sent at all, as OpenTelemetry says.
    otel_disabled: bool = "OTEL_SDK_DISABLED", Text("false"), Plain, otel_switch;
    /// Which traces are recorded, as OpenTelemetry says; unset is all that their callers did not leave out.
    otel_sampler: Option<String> = "OTEL_TRACES_SAMPLER", UNSET, Plain, optional(sampler);
    /// The share of traces that traceidratio records, between 0 and 1.
    otel_sampler_arg: Option<String> = "OTEL_TRACES_SAMPLER_ARG", UNSET, Plain, optional(text);
}

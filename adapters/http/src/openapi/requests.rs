//! What clients send, as the handlers read it. A test sends every field that is here, and one that is
//! not, to the handler, so that neither knows a field of which the other does not.

#![expect(dead_code, reason = "handlers read the same out of JSON and queries")]

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::schema;

/// Which piece of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Piece {
    /// The most entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where the piece begins: the `next_cursor` of the one before, of the same list with the same filters.
    cursor: Option<String>,
}

/// Which runs.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filters {
    /// Only runs in this state; may be given several times.
    #[param(schema_with = schema::run_states, style = Form, explode)]
    state: Vec<String>,
    /// Only those of this agent, by its id or slug.
    agent: Option<String>,
}

/// Which runs' cost.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Period {
    /// From when on runs were created; 30 days before its end, if it is left out.
    #[param(value_type = String, format = DateTime, required = false)]
    from: String,
    /// Before when; now, if it is left out.
    #[param(value_type = String, format = DateTime, required = false)]
    to: String,
    /// A sum for each; one for all, if it is left out.
    #[param(schema_with = schema::usage_group, required = false)]
    group_by: String,
}

/// A user to be added.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"email": "ada@example.org", "name": "Ada", "role": "member"}))]
pub(crate) struct NewUser {
    /// Unique in the tenant.
    email: String,
    /// For people.
    name: String,
    #[schema(schema_with = schema::role)]
    role: String,
}

/// A change of a user; what is left out stays. A member may change his own name.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "Ada L."}))]
pub(crate) struct UserChange {
    /// For people.
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(schema_with = schema::role, required = false)]
    role: String,
    #[schema(schema_with = schema::user_status, required = false)]
    status: String,
}

/// A key to be made.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "laptop"}))]
pub(crate) struct NewApiKey {
    /// For people.
    name: String,
    /// Whose it is; the caller's own, if it is left out.
    #[schema(value_type = Uuid, required = false)]
    user_id: String,
    /// From when on it is refused; never, if there is none.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// A tenant to be made, with its first owner.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "Acme", "slug": "acme", "owner": {"email": "ada@example.org", "name": "Ada"}}))]
pub(crate) struct NewTenant {
    /// For people.
    name: String,
    /// For programs.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    slug: String,
    owner: NewOwner,
}

/// A tenant's first owner.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOwner {
    /// Unique in the tenant.
    email: String,
    /// For people.
    name: String,
}

/// A change of a tenant.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"status": "active"}))]
pub(crate) struct TenantChange {
    #[schema(schema_with = schema::tenant_status)]
    status: String,
}

/// An agent to be made.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "slug": "clock", "provider": "demo", "model": "demo",
    "system_prompt": "Tell the time.", "tools": ["get_time"]
}))]
pub(crate) struct NewAgent {
    /// Its name for programs; never changed, and taken also while the agent is archived.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    slug: String,
    /// One of `GET /v1/providers`.
    provider: String,
    /// The model, in its provider's spelling.
    #[schema(min_length = 1, max_length = 200)]
    model: String,
    /// Its name for people; the slug, if it is left out.
    #[schema(nullable = false, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// What it is for.
    #[schema(nullable = false)]
    description: Option<String>,
    /// What every conversation begins with.
    #[schema(nullable = false)]
    system_prompt: Option<String>,
    /// Names of `GET /v1/tools`; every one, if there is none.
    #[schema(nullable = false)]
    tools: Option<Vec<String>>,
    /// The most tokens of an answer; null leaves it to the provider.
    #[schema(minimum = 1)]
    max_tokens: Option<u32>,
    /// Null leaves it to the provider.
    #[schema(minimum = 0.0, maximum = 2.0)]
    temperature: Option<f64>,
    #[schema(nullable = false)]
    limits: Option<NewLimits>,
    #[schema(nullable = false)]
    middleware: Option<NewMiddleware>,
    /// The callers' own data.
    #[schema(schema_with = schema::object)]
    metadata: Option<Map<String, Value>>,
}

/// A change of an agent; what is left out stays.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"model": "demo", "limits": {"max_iterations": 5}}))]
pub(crate) struct AgentChange {
    /// One of `GET /v1/providers`.
    #[schema(nullable = false)]
    provider: Option<String>,
    /// The model, in its provider's spelling.
    #[schema(nullable = false, min_length = 1, max_length = 200)]
    model: Option<String>,
    /// Its name for people.
    #[schema(nullable = false, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// What it is for.
    #[schema(nullable = false)]
    description: Option<String>,
    /// What every conversation begins with.
    #[schema(nullable = false)]
    system_prompt: Option<String>,
    /// Names of `GET /v1/tools`; every one, if there is none.
    #[schema(nullable = false)]
    tools: Option<Vec<String>>,
    /// The most tokens of an answer; null leaves it to the provider.
    #[schema(minimum = 1)]
    max_tokens: Option<u32>,
    /// Null leaves it to the provider.
    #[schema(minimum = 0.0, maximum = 2.0)]
    temperature: Option<f64>,
    #[schema(nullable = false)]
    limits: Option<NewLimits>,
    #[schema(nullable = false)]
    middleware: Option<NewMiddleware>,
    /// The callers' own data, whole.
    #[schema(schema_with = schema::object)]
    metadata: Option<Map<String, Value>>,
}

/// An agent's own limits: they only tighten the server's. Null leaves the server's.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewLimits {
    /// Model calls of a run.
    #[schema(minimum = 1)]
    max_iterations: Option<u32>,
    /// One tool call, in milliseconds.
    #[schema(minimum = 1)]
    tool_timeout_ms: Option<u64>,
    /// The whole run, in milliseconds.
    #[schema(minimum = 1)]
    run_deadline_ms: Option<u64>,
}

/// The optional layers; one that is left out has its default.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMiddleware {
    #[schema(nullable = false)]
    todo: Option<TodoSettings>,
    #[schema(nullable = false)]
    repeat_call: Option<RepeatCallSettings>,
}

/// The plan that a model may keep.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoSettings {
    /// Whether it is there.
    #[schema(nullable = false)]
    enabled: Option<bool>,
}

/// The end of equal calls.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepeatCallSettings {
    /// Whether it is there.
    #[schema(nullable = false)]
    enabled: Option<bool>,
    /// The equal call from which on none is made.
    #[schema(nullable = false, minimum = 2, maximum = 1000)]
    threshold: Option<u32>,
}

/// A session to be made.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"agent": "clock", "title": "First steps"}))]
pub(crate) struct NewSession {
    /// An agent's id or slug.
    agent: String,
    /// Its name for people.
    #[schema(nullable = false)]
    title: Option<String>,
    /// The callers' own data.
    #[schema(schema_with = schema::object)]
    metadata: Option<Map<String, Value>>,
}

/// A change of a session; what is left out stays.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"title": "Later steps"}))]
pub(crate) struct SessionChange {
    /// Its name for people.
    #[schema(nullable = false)]
    title: Option<String>,
    /// The callers' own data, whole.
    #[schema(schema_with = schema::object)]
    metadata: Option<Map<String, Value>>,
}

/// A user's message.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"content": "My name is Ada."}))]
pub(crate) struct NewMessage {
    /// What is said.
    #[schema(schema_with = schema::said)]
    content: Value,
}

/// A run to be accepted.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"input": "What time is it in Zurich?"}))]
pub(crate) struct NewRun {
    /// What the user says.
    #[schema(schema_with = schema::said)]
    input: Value,
    /// What happens when the session has runs that have not ended.
    #[schema(schema_with = schema::on_busy)]
    on_busy: Option<String>,
    /// The callers' own data.
    #[schema(schema_with = schema::object)]
    metadata: Option<Map<String, Value>>,
}

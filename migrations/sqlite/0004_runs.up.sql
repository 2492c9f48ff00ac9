-- One row for each run. The checks make impossible what hango_domain::run::Run cannot express.
-- What changes often comes first: SQLite writes only the pages of a row that differ.
create table runs (
    id                     text primary key not null,
    tenant_id              text not null references tenants (id),
    session_id             text not null references sessions (id) on delete cascade,
    -- where it stands
    state                  text not null
                           check (state in ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    owner_id               text,
    lease_expires_at       integer,
    attempt                integer not null check (attempt >= 0),
    stalled_attempts       integer not null check (stalled_attempts >= 0),
    available_at           integer,
    cancel_requested_at    integer,
    started_at             integer,
    finished_at            integer,
    -- how far it came
    resume_turn            integer not null check (resume_turn >= 0),
    begun_turn             integer not null,
    answered_turn          integer not null,
    tries                  integer not null check (tries >= 0),
    empty_answers          integer not null check (empty_answers >= 0),
    last_event             integer not null check (last_event >= 1),
    last_write             text,
    iterations             integer not null check (iterations >= 0),
    -- what it cost and how it ended
    usage                  text not null check (json_valid(usage)),
    usage_discarded        text not null check (json_valid(usage_discarded)),
    stop_reason            text,
    final_message_id       text,
    error                  text,
    error_message          text,
    -- what never changes
    agent_id               text not null references agents (id),
    agent_version          integer not null check (agent_version >= 1),
    created_by             text not null references users (id),
    created_at             integer not null,
    lane                   text not null default 'main',
    session_no             integer not null check (session_no >= 1),
    trace_id               text not null,
    span_id                text not null,
    trace_sampled          integer not null check (trace_sampled in (0, 1)),
    created_by_traceparent text,
    input_message_id       text not null,
    metadata               text not null check (json_valid(metadata)),
    input                  text not null check (json_valid(input)),
    agent_snapshot         text not null check (json_valid(agent_snapshot)),
    check ((state = 'running') = (owner_id is not null)),
    check ((state = 'running') = (lease_expires_at is not null)),
    check ((state in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)),
    check ((state = 'failed') = (error is not null)),
    check ((state = 'failed') = (error_message is not null)),
    check ((attempt = 0) = (started_at is null)),
    check (attempt > 0 or state in ('queued', 'cancelled')),
    check (available_at is null or state in ('queued', 'cancelled')),
    check (begun_turn in (resume_turn, resume_turn + 1)),
    check (answered_turn in (resume_turn, resume_turn + 1))
) strict;

-- serves: renewal, sweep, cancels and the caps of tenants; holds that a session has one running run.
-- No index has a column that a renewal or a turn changes.
create unique index runs_running on runs (session_id) where state = 'running';

-- serves: the claim, which walks the tenants that have queued runs and the oldest runs of each
create index runs_queued on runs (tenant_id, created_at, id) where state = 'queued';

-- serves: the first run of a session that has not ended
create index runs_pending on runs (session_id, session_no) where state in ('queued', 'running');

-- serves: the runs of a session
create unique index runs_of_session on runs (session_id, session_no);

-- serves: the runs of a tenant, newest first
create index runs_by_age on runs (tenant_id, created_at, id);

-- The journal: hango_domain::journal::ToolCall.
create table tool_calls (
    run_id        text not null references runs (id) on delete cascade,
    turn          integer not null check (turn >= 1),
    position      integer not null check (position >= 1),
    id            text not null unique,
    tool_use_id   text not null,
    name          text not null,
    state         text not null check (state in ('pending', 'started', 'finished', 'in_doubt')),
    executions    integer not null check (executions >= 0),
    started_at    integer,
    finished_at   integer,
    invalid_input text,
    input         text not null check (json_valid(input)),
    result        text check (json_valid(result)),
    unique (run_id, turn, position),
    check ((state in ('finished', 'in_doubt')) = (result is not null)),
    check ((state in ('finished', 'in_doubt')) = (finished_at is not null)),
    check ((executions = 0) = (started_at is null))
) strict;

-- Small rows, read in order: no rowid beside the key.
create table events (
    run_id  text not null references runs (id) on delete cascade,
    n       integer not null check (n >= 1),
    turn    integer not null,
    attempt integer not null,
    at      integer not null,
    version integer not null,
    kind    text not null check (json_valid(kind)),
    primary key (run_id, n)
) strict, without rowid;

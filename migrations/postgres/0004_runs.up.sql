-- What hango_domain::run::Run can express. One function: PostgreSQL reads the text of each check anew at
-- every write, and twenty of them cost a fifth of one.
create function run_is_possible(
    state text, owner_id uuid, lease_expires_at timestamptz, attempt int, stalled_attempts int,
    available_at timestamptz, started_at timestamptz, finished_at timestamptz, resume_turn int,
    begun_turn int, answered_turn int, tries int, empty_answers int, iterations int,
    last_event bigint, error text, error_message text
) returns boolean
language plpgsql immutable as $$
begin
    return state in ('queued', 'running', 'succeeded', 'failed', 'cancelled')
        and (state = 'running') = (owner_id is not null)
        and (state = 'running') = (lease_expires_at is not null)
        and (state in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)
        and (state = 'failed') = (error is not null)
        and (state = 'failed') = (error_message is not null)
        and (attempt = 0) = (started_at is null)
        and (attempt > 0 or state in ('queued', 'cancelled'))
        and (available_at is null or state in ('queued', 'cancelled'))
        and begun_turn in (resume_turn, resume_turn + 1)
        and answered_turn in (resume_turn, resume_turn + 1)
        and least(attempt, stalled_attempts, resume_turn, tries, empty_answers, iterations) >= 0
        and last_event >= 1;
end
$$;

-- One row for each run. The check makes impossible what hango_domain::run::Run cannot express.
--
-- Every write of a run's holder makes a new version of its row. So that this costs little:
-- * No index has a column that changes, and each page has room for new versions: they are heap-only
--   updates, which touch no index. What would be a partial index on `state` is a table of its own below.
-- * Of a new version only what lies between its first and its last change is logged. What changes stands
--   together, and behind it a column of eight bytes, from which on all is placed as it was before.
-- * It refers to nothing. A reference has the database look for the other row, and lock it, at every
--   insert; the statement that adds a run has read its session, and the others are never removed.
create table runs (
    id                     uuid primary key,
    -- where it stands
    attempt                int not null,
    stalled_attempts       int not null,
    started_at             timestamptz,
    available_at           timestamptz,
    cancel_requested_at    timestamptz,
    finished_at            timestamptz,
    owner_id               uuid,
    lease_expires_at       timestamptz,
    state                  text not null,
    -- how far it came
    resume_turn            int not null,
    begun_turn             int not null,
    answered_turn          int not null,
    tries                  int not null,
    empty_answers          int not null,
    iterations             int not null,
    last_event             bigint not null,
    last_write             uuid,
    -- what it cost (null for nothing) and how it ended
    usage                  jsonb,
    usage_discarded        jsonb,
    final_message_id       uuid,
    stop_reason            text,
    error                  text,
    error_message          text,
    -- what never changes
    created_at             timestamptz not null,
    session_no             bigint not null,
    agent_version          int not null,
    trace_sampled          boolean not null,
    tenant_id              uuid not null,
    session_id             uuid not null,
    agent_id               uuid not null,
    created_by             uuid not null,
    input_message_id       uuid not null,
    lane                   text not null default 'main',
    trace_id               text not null,
    span_id                text not null,
    created_by_traceparent text,
    metadata               json not null,
    input                  jsonb not null,
    check (run_is_possible(
        state, owner_id, lease_expires_at, attempt, stalled_attempts, available_at, started_at,
        finished_at, resume_turn, begun_turn, answered_turn, tries, empty_answers, iterations,
        last_event, error, error_message))
) with (fillfactor = 60);

-- serves: the runs of a session
create unique index runs_of_session on runs (session_id, session_no);

-- serves: the runs of a tenant, newest first
create index runs_by_age on runs (tenant_id, created_at, id);

-- The agents as they were when runs were accepted; never changed. A version has one row, however many
-- runs it has, so that a run does not carry its agent's prompt.
create table agent_snapshots (
    agent_id uuid not null,
    version  int not null,
    snapshot json not null,
    primary key (agent_id, version)
);

-- The runs that wait, and those that are running: what the claim, the renewal and the sweep look for is
-- here, and costs the same however many runs have ended. Both are kept by the trigger below as an index
-- on `runs` is kept, and hold nothing that `runs` does not.
create table queued_runs (
    tenant_id     uuid not null,
    created_at    timestamptz not null,
    run_id        uuid not null,
    session_id    uuid not null,
    session_no    bigint not null,
    available_at  timestamptz,
    -- serves: the claim, which walks the tenants that have queued runs and the oldest runs of each
    primary key (tenant_id, created_at, run_id),
    -- serves: the first queued run of a session
    unique (session_id, session_no)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table running_runs (
    -- holds that a session has one running run
    session_id uuid primary key,
    run_id     uuid not null,
    tenant_id  uuid not null,
    owner_id   uuid not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The setting: these tables are small when a session plans its statements, and may have grown since.
create function runs_index_state() returns trigger
language plpgsql set enable_seqscan = off as $$
begin
    if tg_op <> 'INSERT' then
        if old.state = 'queued' then
            delete from queued_runs
            where tenant_id = old.tenant_id and created_at = old.created_at and run_id = old.id;
        elsif old.state = 'running' then
            delete from running_runs where session_id = old.session_id and run_id = old.id;
        end if;
    end if;
    if tg_op <> 'DELETE' then
        if new.state = 'queued' then
            insert into queued_runs (tenant_id, created_at, run_id, session_id, session_no, available_at)
            values (new.tenant_id, new.created_at, new.id, new.session_id, new.session_no, new.available_at);
        elsif new.state = 'running' then
            insert into running_runs (session_id, run_id, tenant_id, owner_id)
            values (new.session_id, new.id, new.tenant_id, new.owner_id);
        end if;
    end if;
    return null;
end
$$;

create trigger runs_index_state after insert or delete on runs
    for each row execute function runs_index_state();

create trigger runs_index_state_again after update on runs
    for each row
    when (old.state is distinct from new.state
          or old.owner_id is distinct from new.owner_id
          or old.available_at is distinct from new.available_at)
    execute function runs_index_state();

-- What hango_domain::journal::ToolCall can express.
create function tool_call_is_possible(
    state text, executions int, started_at timestamptz, finished_at timestamptz, has_result boolean
) returns boolean
language plpgsql immutable as $$
begin
    return state in ('pending', 'started', 'finished', 'in_doubt')
        and (state in ('finished', 'in_doubt')) = has_result
        and (state in ('finished', 'in_doubt')) = (finished_at is not null)
        and (executions = 0) = (started_at is null)
        and executions >= 0;
end
$$;

-- The journal.
create table tool_calls (
    run_id        uuid not null,
    turn          int not null,
    position      int not null,
    id            uuid not null,
    state         text not null,
    executions    int not null,
    started_at    timestamptz,
    finished_at   timestamptz,
    tool_use_id   text not null,
    name          text not null,
    invalid_input text,
    input         json not null,
    result        json,
    primary key (run_id, turn, position),
    check (tool_call_is_possible(state, executions, started_at, finished_at, result is not null))
) with (fillfactor = 70);

-- One row for each write of a run, with all that it told: the events up to number `n`, in order, each
-- with its turn. A row costs more than what an event says.
create table events (
    run_id  uuid not null,
    n       bigint not null,
    attempt int not null,
    version int not null,
    at      timestamptz not null,
    told    json not null,
    primary key (run_id, n)
);

-- What a session, and a run, takes with it.
create function sessions_take_runs_with_them() returns trigger
language plpgsql set enable_seqscan = off as $$
begin
    delete from runs using gone where runs.session_id = gone.id;
    return null;
end
$$;

create trigger sessions_take_runs_with_them after delete on sessions
    referencing old table as gone
    for each statement execute function sessions_take_runs_with_them();

create function runs_take_events_with_them() returns trigger
language plpgsql set enable_seqscan = off as $$
begin
    delete from tool_calls using gone where tool_calls.run_id = gone.id;
    delete from events using gone where events.run_id = gone.id;
    return null;
end
$$;

create trigger runs_take_events_with_them after delete on runs
    referencing old table as gone
    for each statement execute function runs_take_events_with_them();

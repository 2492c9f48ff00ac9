create table agents (
    id          uuid primary key,
    tenant_id   uuid not null references tenants (id),
    version     int not null check (version >= 1),
    slug        text not null,
    name        text not null,
    description text not null,
    settings    json not null,
    metadata    json not null,
    created_by  uuid not null references users (id),
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    archived_at timestamptz,
    -- archived ones too: a slug is never used again
    unique (tenant_id, slug)
);

-- serves: the agents of a tenant, newest first
create index agents_by_age on agents (tenant_id, created_at, id);

-- The last four columns are the domain's SessionLine: every rule over several runs of a session is a
-- condition on this one row. Every run changes them: no index has one, and each page has room for new
-- versions of its rows (heap-only updates).
create table sessions (
    id           uuid primary key,
    tenant_id    uuid not null references tenants (id),
    agent_id     uuid not null references agents (id),
    created_by   uuid not null references users (id),
    title        text not null,
    metadata     json not null,
    created_at   timestamptz not null,
    updated_at   timestamptz not null,
    pending_runs int not null default 0 check (pending_runs >= 0),
    running_run  uuid,
    last_run_no  bigint not null default 0,
    last_seq     bigint not null default 0,
    check (running_run is null or pending_runs > 0)
) with (fillfactor = 70);

-- serves: the sessions of a tenant, newest first
create index sessions_by_age on sessions (tenant_id, created_at, id);

-- Only ever added to, and removed with the session. Refers to nothing: whoever adds a message holds its
-- session's row, so the session is there, and to have the database look again would cost each message
-- more than its own writing. run_id is null for what a client appended.
create table messages (
    session_id  uuid not null,
    seq         bigint not null check (seq >= 1),
    id          uuid not null,
    run_id      uuid,
    role        text not null check (role in ('user', 'assistant')),
    content     json not null,
    stop_reason text,
    usage       json,
    partial     boolean not null,
    created_at  timestamptz not null,
    primary key (session_id, seq)
);

-- holds: a client appends a message once. What a run says is written once by the fence of its run, and
-- needs no index of its own.
create unique index messages_of_clients on messages (id) where run_id is null;

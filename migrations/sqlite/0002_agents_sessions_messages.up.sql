create table agents (
    id          text primary key not null,
    tenant_id   text not null references tenants (id),
    version     integer not null check (version >= 1),
    slug        text not null,
    name        text not null,
    description text not null,
    settings    text not null check (json_valid(settings)),
    metadata    text not null check (json_valid(metadata)),
    created_by  text not null references users (id),
    created_at  integer not null,
    updated_at  integer not null,
    archived_at integer,
    -- archived ones too: a slug is never used again
    unique (tenant_id, slug)
) strict;

-- serves: the agents of a tenant, newest first
create index agents_by_age on agents (tenant_id, created_at, id);

-- The last four columns are the domain's SessionLine: every rule over several runs of a session is a
-- condition on this one row.
create table sessions (
    id           text primary key not null,
    tenant_id    text not null references tenants (id),
    agent_id     text not null references agents (id),
    created_by   text not null references users (id),
    title        text not null,
    metadata     text not null check (json_valid(metadata)),
    created_at   integer not null,
    updated_at   integer not null,
    pending_runs integer not null default 0 check (pending_runs >= 0),
    running_run  text,
    last_run_no  integer not null default 0,
    last_seq     integer not null default 0,
    check (running_run is null or pending_runs > 0)
) strict;

-- serves: the sessions of a tenant, newest first
create index sessions_by_age on sessions (tenant_id, created_at, id);

-- Only ever added to, and removed with the session. run_id refers to nothing: it is null for what a
-- client appended, and a run goes only with its session.
create table messages (
    session_id  text not null references sessions (id) on delete cascade,
    seq         integer not null check (seq >= 1),
    id          text not null unique,
    run_id      text,
    role        text not null check (role in ('user', 'assistant')),
    content     text not null check (json_valid(content)),
    stop_reason text,
    usage       text check (json_valid(usage)),
    partial     integer not null check (partial in (0, 1)),
    created_at  integer not null,
    unique (session_id, seq)
) strict;

-- Tenants, their users and the users' keys.
-- In every table: documents that have to come back as they were given are json, which keeps their text;
-- jsonb would write numbers anew.

create table tenants (
    id         uuid primary key,
    slug       text not null unique,
    name       text not null,
    status     text not null check (status in ('active', 'suspended')),
    created_at timestamptz not null,
    updated_at timestamptz not null
);

create table users (
    id         uuid primary key,
    tenant_id  uuid not null references tenants (id),
    email      text not null,
    name       text not null,
    role       text not null check (role in ('owner', 'admin', 'member')),
    status     text not null check (status in ('active', 'disabled')),
    created_at timestamptz not null,
    updated_at timestamptz not null,
    unique (tenant_id, email)
);

-- A key's use is noted in place: no index has a column that this changes, and there is room for it.
create table api_keys (
    id           uuid primary key,
    tenant_id    uuid not null references tenants (id),
    user_id      uuid not null references users (id),
    name         text not null,
    prefix       text not null unique,
    secret_hash  bytea not null check (length(secret_hash) = 32),
    created_at   timestamptz not null,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
) with (fillfactor = 70);

-- serves: the keys of a tenant, newest first
create index api_keys_by_tenant on api_keys (tenant_id, created_at, id);

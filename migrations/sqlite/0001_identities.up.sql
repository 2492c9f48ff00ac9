-- Tenants, their users and the users' keys.
-- In every table: ids are hyphenated UUIDs, moments are microseconds since the Unix epoch.

create table tenants (
    id         text primary key not null,
    slug       text not null unique,
    name       text not null,
    status     text not null check (status in ('active', 'suspended')),
    created_at integer not null,
    updated_at integer not null
) strict;

create table users (
    id         text primary key not null,
    tenant_id  text not null references tenants (id),
    email      text not null,
    name       text not null,
    role       text not null check (role in ('owner', 'admin', 'member')),
    status     text not null check (status in ('active', 'disabled')),
    created_at integer not null,
    updated_at integer not null,
    unique (tenant_id, email)
) strict;

create table api_keys (
    id           text primary key not null,
    tenant_id    text not null references tenants (id),
    user_id      text not null references users (id),
    name         text not null,
    prefix       text not null unique,
    secret_hash  blob not null check (length(secret_hash) = 32),
    created_at   integer not null,
    expires_at   integer,
    revoked_at   integer,
    last_used_at integer
) strict;

-- serves: the keys of a tenant, newest first
create index api_keys_by_tenant on api_keys (tenant_id, created_at, id);

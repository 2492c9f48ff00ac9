-- What came of requests that carry a key. Refers to nothing, so that an answer outlives what it tells of.
create table idempotency_keys (
    tenant_id  text not null,
    user_id    text not null,
    call       text not null,
    key        text not null,
    body       blob not null check (length(body) = 32),
    answer     text not null check (json_valid(answer)),
    created_at integer not null,
    primary key (tenant_id, user_id, call, key)
) strict;

-- serves: the oldest, to be removed
create index idempotency_keys_by_age on idempotency_keys (created_at);

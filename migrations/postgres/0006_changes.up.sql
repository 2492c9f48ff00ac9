-- Whose change an audit row tells of: the key that it names, or null where it names none. Raises where that
-- key may not act (the domain's may_act), or where its user has a lesser role than he was let in with.
-- Being volatile it sees what was committed until now, whatever its statement waited for; and what its
-- statement has changed, so what may concern the actor himself is changed behind it.
create function acting_key(change json, moment timestamptz) returns uuid language plpgsql as $$
declare
    acting uuid := change ->> 'api_key_id';
begin
    if acting is not null and not exists (
        select from api_keys k
        join users u on u.id = k.user_id and u.tenant_id = k.tenant_id
        join tenants t on t.id = k.tenant_id
        where k.id = acting
          and k.user_id = (change ->> 'actor_id')::uuid
          and k.tenant_id = (change ->> 'tenant_id')::uuid
          and k.revoked_at is null
          and (k.expires_at is null or k.expires_at > moment)
          and u.status = 'active'
          and t.status = 'active'
          and u.role in (select json_array_elements_text(change -> 'actor_roles'))
    ) then
        raise exception 'who asks may not act any more' using errcode = 'ZH001';
    end if;
    return acting;
end
$$;

-- What came of requests that carry a key. Refers to nothing, so that an answer outlives what it tells of.
-- answer is null only inside the transaction that makes it: whoever comes with the same key waits for that.
create table idempotency_keys (
    tenant_id  uuid not null,
    user_id    uuid not null,
    call       text not null,
    key        text not null,
    body       bytea not null check (length(body) = 32),
    answer     json,
    created_at timestamptz not null,
    primary key (tenant_id, user_id, call, key)
);

-- serves: the oldest, to be removed
create index idempotency_keys_by_age on idempotency_keys (created_at);

-- Who changed what. Refers to nothing, so that a row outlives whatever it tells of.
create table audit_events (
    id          uuid not null,
    tenant_id   uuid not null,
    actor_id    uuid,
    api_key_id  uuid,
    action      text not null,
    target_kind text not null,
    target_id   uuid,
    detail      json not null,
    trace_id    text,
    request_id  text,
    status      int not null,
    at          timestamptz not null,
    -- serves: the trail of a tenant, newest first. Every accepted run has a row: one index is enough.
    primary key (tenant_id, at, id)
);

-- The trail is only ever added to.
create function audit_events_stay_as_they_are() returns trigger language plpgsql as $$
begin
    raise exception 'audit rows are never changed';
end
$$;

create trigger audit_events_stay_as_they_are before update on audit_events
    for each statement execute function audit_events_stay_as_they_are();

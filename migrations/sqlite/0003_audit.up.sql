-- Who changed what. Refers to nothing, so that a row outlives whatever it tells of.
create table audit_events (
    id          text primary key not null,
    tenant_id   text not null,
    actor_id    text,
    api_key_id  text,
    action      text not null,
    target_kind text not null,
    target_id   text,
    detail      text not null check (json_valid(detail)),
    trace_id    text,
    request_id  text,
    status      integer not null,
    at          integer not null
) strict;

-- serves: the trail of a tenant, newest first
create index audit_events_by_age on audit_events (tenant_id, at, id);

-- The trail is only ever added to.
create trigger audit_events_stay_as_they_are before update on audit_events
begin
    select raise(abort, 'audit rows are never changed');
end;

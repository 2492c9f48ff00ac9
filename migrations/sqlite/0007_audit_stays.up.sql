-- What is on the trail is not taken from it either.
create trigger audit_events_stay before delete on audit_events
begin
    select raise(abort, 'audit rows are never changed');
end;

-- What is on the trail is not taken from it either.
create trigger audit_events_stay before delete or truncate on audit_events
    for each statement execute function audit_events_stay_as_they_are();

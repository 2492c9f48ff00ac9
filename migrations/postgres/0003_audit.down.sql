drop table audit_events;
drop function audit_events_stay_as_they_are();

drop trigger audit_events_stay on audit_events;

drop trigger audit_events_stay;

-- A run's memory, and the format it is stored in.
alter table runs add column state_json jsonb not null default '{}';
alter table runs add column state_version int not null default 1 check (state_version >= 1);

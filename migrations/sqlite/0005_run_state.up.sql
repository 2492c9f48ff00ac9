-- A run's memory, and the format it is stored in.
alter table runs add column state_json text not null default '{}' check (json_valid(state_json));
alter table runs add column state_version integer not null default 1 check (state_version >= 1);

-- A run's memory, and the format it is stored in. There is no check of the JSON: every change writes the
-- column, and one of a run whose memory is damaged has to go through, so that it can be ended.
alter table runs add column state_json text not null default '{}';
alter table runs add column state_version integer not null default 1 check (state_version >= 1);

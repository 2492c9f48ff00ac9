alter table runs drop column state_version;
alter table runs drop column state_json;

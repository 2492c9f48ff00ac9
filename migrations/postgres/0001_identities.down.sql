drop table api_keys;
drop table users;
drop table tenants;

drop table idempotency_keys;
drop function acting_key;

drop table events;
drop table tool_calls;
drop table runs;

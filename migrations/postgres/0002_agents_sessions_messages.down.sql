drop table messages;
drop table sessions;
drop table agents;

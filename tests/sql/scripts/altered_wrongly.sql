-- ALTER TABLE of what is no table, and system columns.
create table t (a int primary key, b int);
create view v as select a, b from t;
alter table v alter column a set not null;
alter table v alter column a drop not null;
alter table v drop column a;
alter table v add column c int;
alter table v alter a type text;
alter table v add constraint c check (a > 0);
alter table t drop xmin;
alter table t drop column if exists ctid;
alter table pg_class drop column relname;
alter table pg_class alter relname set not null;
create table u (a int, foreign key (tableoid) references t (a));
create table u (a oid, foreign key (a) references t (tableoid));
create table u (a int, b int, foreign key (a) references t on delete set null (a, a));

-- Comments on the indexes of constraints, which are not those on the constraints.
create table ct (id int constraint ct_pk primary key, x int constraint ct_u unique, y int);
create index ct_y on ct (y);
comment on index ct_pk is 'the key''s'; comment on constraint ct_pk on ct is 'constraint'; comment on index ct_y is 'plain';
comment on index ct_u is 'gone'; comment on index ct_u is null;
select c.relname, obj_description(c.oid, 'pg_class') from pg_class c where relname like 'ct\_%' order by 1;
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where conrelid = 'ct'::regclass order by 1;
create table cl (like ct including all);
select c.relname, obj_description(c.oid, 'pg_class') from pg_class c where relname like 'cl\_%' order by 1;
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where conrelid = 'cl'::regclass order by 1;
create table cm (like ct including indexes including constraints);
select c.relname, obj_description(c.oid, 'pg_class') from pg_class c where relname like 'cm\_%' order by 1;
alter table ct rename constraint ct_pk to ct_key;
select c.relname, obj_description(c.oid, 'pg_class') from pg_class c where relname like 'ct\_%' order by 1;
drop table ct, cl, cm;

-- txid_current(): one number a transaction, which no other has.
create table seen (n bigint);
insert into seen select txid_current();
insert into seen select txid_current();
begin;
insert into seen select txid_current();
insert into seen select txid_current();
select count(*) from seen where n = txid_current();
commit;
begin;
select count(*) from seen where n = txid_current();
rollback;
select count(distinct n), count(*), min(n) > 0 from seen;
select txid_current() = txid_current(), pg_typeof(txid_current());
create table kept (n bigint default txid_current());
insert into kept default values;
select n is not null from kept;

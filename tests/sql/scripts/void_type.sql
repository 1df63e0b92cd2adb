-- The type void: a parameter of it is no argument of a function; nothing is kept of it.
prepare sooner (void) as select now() = now($1);
execute sooner('');
prepare lowered (void, text) as select lower($1, $2);
execute lowered('', 'A');
prepare wrong (void) as select pg_typeof($1);
select 'x'::void, null::void is null, pg_typeof('x'::void);
select 1::void;
select null::void[];
create table v (a void);
create type tv as (a void);
create domain dv as void;
create table t as select pg_sleep(0) as a;
prepare same as select (1, 'foo') = $1;
deallocate same;

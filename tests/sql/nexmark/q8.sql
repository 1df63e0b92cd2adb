-- New users: the persons that have opened an auction within the ten seconds in which they came.
select p.id, p.name, p.starts
from (
    select id, name, date_bin('10 seconds', date_time, timestamp '2000-01-01') as starts
    from person
    group by 1, 2, 3
) as p join (
    select seller, date_bin('10 seconds', date_time, timestamp '2000-01-01') as starts
    from auction
    group by 1, 2
) as a on a.seller = p.id and a.starts = p.starts

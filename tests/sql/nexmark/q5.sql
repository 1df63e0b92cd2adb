-- Hot items: the auctions with the most bids of ten seconds, every two seconds. A bid is in five such windows.
with counted as (
    select date_bin('2 seconds', date_time, timestamp '2000-01-01') - hop * interval '2 seconds' as starts,
        auction, count(*) as bids
    from bid cross join generate_series(0, 4) as g (hop)
    group by 1, 2
)
select c.starts, c.auction, c.bids
from counted c join (select starts, max(bids) as most from counted group by starts) as m on m.starts = c.starts
where c.bids = m.most

-- Highest bid: the bids with the highest price of each ten seconds.
select b.auction, b.price, b.bidder, b.date_time, m.starts
from bid b join (
    select date_bin('10 seconds', date_time, timestamp '2000-01-01') as starts, max(price) as price
    from bid
    group by 1
) as m on m.price = b.price and m.starts = date_bin('10 seconds', b.date_time, timestamp '2000-01-01')

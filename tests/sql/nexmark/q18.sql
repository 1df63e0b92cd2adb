-- Last bid: of each bidder the last bid on each auction.
select auction, bidder, price, channel, url, date_time, extra
from (
    select *, row_number() over (partition by bidder, auction order by date_time desc, price desc) as place
    from bid
) as placed
where place = 1

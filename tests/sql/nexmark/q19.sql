-- Top ten: the ten highest bids of each auction.
select auction, bidder, price, channel, url, date_time, extra, place
from (
    select *, row_number() over (partition by auction order by price desc, date_time desc, bidder desc) as place
    from bid
) as placed
where place <= 10

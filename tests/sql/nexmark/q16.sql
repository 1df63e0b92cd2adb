-- Statistics of each channel and day: as of each day, and the minute of the last bid.
select channel, to_char(date_time, 'YYYY-MM-DD') as day, max(to_char(date_time, 'HH24:MI')) as minute,
    count(*) as bids,
    count(*) filter (where price < 10000) as low_bids,
    count(*) filter (where price >= 10000 and price < 1000000) as middle_bids,
    count(*) filter (where price >= 1000000) as high_bids,
    count(distinct bidder) as bidders,
    count(distinct bidder) filter (where price < 10000) as low_bidders,
    count(distinct bidder) filter (where price >= 10000 and price < 1000000) as middle_bidders,
    count(distinct bidder) filter (where price >= 1000000) as high_bidders,
    count(distinct auction) as auctions,
    count(distinct auction) filter (where price < 10000) as low_auctions,
    count(distinct auction) filter (where price >= 10000 and price < 1000000) as middle_auctions,
    count(distinct auction) filter (where price >= 1000000) as high_auctions
from bid
group by 1, 2

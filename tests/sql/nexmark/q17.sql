-- Statistics of each auction and day: bids, all and by three ranges of prices, and their prices.
select auction, to_char(date_time, 'YYYY-MM-DD') as day,
    count(*) as bids,
    count(*) filter (where price < 10000) as low_bids,
    count(*) filter (where price >= 10000 and price < 1000000) as middle_bids,
    count(*) filter (where price >= 1000000) as high_bids,
    min(price) as least, max(price) as most, avg(price) as average, sum(price) as total
from bid
group by 1, 2

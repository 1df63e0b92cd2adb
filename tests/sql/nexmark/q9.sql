-- Winning bids: each auction with the highest bid while it was open, the earliest of equal ones.
select id, item_name, description, initial_bid, reserve, date_time, expires, seller, category,
    auction, bidder, price, bid_time
from (
    select a.*, b.auction, b.bidder, b.price, b.date_time as bid_time,
        row_number() over (partition by a.id order by b.price desc, b.date_time, b.bidder) as place
    from auction a join bid b on b.auction = a.id
    where b.date_time between a.date_time and a.expires
) as placed
where place = 1

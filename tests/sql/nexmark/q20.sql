-- Bids with their auction, of one category.
select b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra,
    a.item_name, a.description, a.initial_bid, a.reserve, a.date_time as opened, a.expires, a.seller, a.category
from bid b join auction a on a.id = b.auction
where a.category = 10

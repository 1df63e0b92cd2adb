-- Side input: all bids with a value that a table has for them.
select b.auction, b.bidder, b.price, b.date_time, s.value
from bid b join side s on s.key = b.auction % 100

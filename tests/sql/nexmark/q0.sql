-- Pass through: all bids as they come.
select auction, bidder, price, date_time, extra
from bid

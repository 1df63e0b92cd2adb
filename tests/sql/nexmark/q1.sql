-- Currency conversion: the prices of all bids in euros.
select auction, bidder, 0.908 * price as price, date_time, extra
from bid

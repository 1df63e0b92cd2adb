-- Selection: the bids on some auctions, chosen by their ids.
select auction, price
from bid
where auction % 123 = 0

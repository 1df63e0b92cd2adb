-- Folders of the address of all bids.
select auction, bidder, price, channel,
    split_part(url, '/', 4) as folder1, split_part(url, '/', 5) as folder2, split_part(url, '/', 6) as folder3
from bid

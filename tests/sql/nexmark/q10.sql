-- Log: all bids with the texts of their day and minute, by which the benchmark's writers of files choose a folder.
select auction, bidder, price, date_time, extra,
    to_char(date_time, 'YYYY-MM-DD') as day, to_char(date_time, 'HH24:MI') as minute
from bid

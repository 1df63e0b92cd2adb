-- Bids of each user in each ten seconds. The benchmark takes the time at which a bid is processed; no such result could
-- be computed again, so that these windows are of the event's time.
select bidder, date_bin('10 seconds', date_time, timestamp '2000-01-01') as starts, count(*) as bids
from bid
group by bidder, starts

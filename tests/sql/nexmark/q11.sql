-- User sessions: how many bids each bidder has made without a pause of over ten seconds.
with marked as (
    select bidder, date_time,
        case when date_time - lag(date_time) over (partition by bidder order by date_time) <= interval '10 seconds'
            then 0 else 1 end as opens
    from bid
), numbered as (
    select bidder, date_time, sum(opens) over (partition by bidder order by date_time) as session
    from marked
)
select bidder, count(*) as bids, min(date_time) as starts, max(date_time) + interval '10 seconds' as ends
from numbered
group by bidder, session

-- Calculation: the bids of a range of prices in euros, the part of the day, and how often a letter is in a text.
select auction, bidder, 0.908 * price as price,
    case when extract(hour from date_time) between 8 and 18 then 'day'
        when extract(hour from date_time) <= 6 or extract(hour from date_time) >= 20 then 'night'
        else 'between' end as part,
    date_time, extra, regexp_count(extra, 'c') as letters
from bid
where 0.908 * price > 1000000 and 0.908 * price < 50000000

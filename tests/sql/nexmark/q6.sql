-- Average selling price by seller: over each auction's winning bid and those of the ten that ended before it.
with winning as (
    select a.id, a.seller, a.expires, max(b.price) as final
    from auction a join bid b on b.auction = a.id
    where b.date_time between a.date_time and a.expires
    group by a.id, a.seller, a.expires
)
select seller, id, avg(final) over (partition by seller order by expires, id rows between 10 preceding and current row)
    as average
from winning

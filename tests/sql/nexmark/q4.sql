-- Average price of a category: of each auction the highest bid while it was open, and their average by category.
select category, avg(final) as average
from (
    select a.id, a.category, max(b.price) as final
    from auction a join bid b on b.auction = a.id
    where b.date_time between a.date_time and a.expires
    group by a.id, a.category
) as closed
group by category

select c_count, count(*) as custdist
from (
    select c_custkey, coalesce(orders, 0)
    from customer left outer join (
        select o_custkey, count(*) as orders from orders where o_comment not like '%special%requests%'
        group by o_custkey
    ) as placed on c_custkey = o_custkey
) as c_orders (c_custkey, c_count)
group by c_count
order by custdist desc, c_count desc

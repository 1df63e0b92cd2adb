select l_orderkey, revenue, o_orderdate, o_shippriority
from customer,
    (select o_orderkey, o_custkey, o_orderdate, o_shippriority from orders where o_orderdate < date '1995-03-15'
        group by o_orderkey, o_custkey, o_orderdate, o_shippriority) as placed,
    (select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue from lineitem
        where l_shipdate > date '1995-03-15' group by l_orderkey) as shipped
where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
order by revenue desc, o_orderdate
limit 10

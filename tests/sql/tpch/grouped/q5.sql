select n_name, sum(volume) as revenue
from customer, supplier, nation, region,
    (select o_orderkey, o_custkey from orders
        where o_orderdate >= date '1994-01-01' and o_orderdate < date '1994-01-01' + interval '1' year
        group by o_orderkey, o_custkey) as placed,
    (select l_orderkey, l_suppkey, sum(l_extendedprice * (1 - l_discount)) as volume from lineitem
        group by l_orderkey, l_suppkey) as shipped
where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
    and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA'
group by n_name
order by revenue desc

select n_name as nation, o_year, sum(volume - ps_supplycost * quantity) as sum_profit
from part, supplier, partsupp, nation,
    (select o_orderkey, extract(year from o_orderdate) as o_year from orders
        group by o_orderkey, extract(year from o_orderdate)) as placed,
    (select l_orderkey, l_partkey, l_suppkey, sum(l_extendedprice * (1 - l_discount)) as volume,
        sum(l_quantity) as quantity
        from lineitem group by l_orderkey, l_partkey, l_suppkey) as shipped
where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
    and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%'
group by n_name, o_year
order by nation, o_year desc

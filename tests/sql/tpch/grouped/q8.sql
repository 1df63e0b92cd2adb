select o_year, sum(case when n2.n_name = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share
from part, supplier, customer, nation n1, nation n2, region,
    (select o_orderkey, o_custkey, extract(year from o_orderdate) as o_year from orders
        where o_orderdate between date '1995-01-01' and date '1996-12-31'
        group by o_orderkey, o_custkey, extract(year from o_orderdate)) as placed,
    (select l_orderkey, l_partkey, l_suppkey, sum(l_extendedprice * (1 - l_discount)) as volume from lineitem
        group by l_orderkey, l_partkey, l_suppkey) as shipped
where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey
    and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and r_name = 'AMERICA'
    and s_nationkey = n2.n_nationkey and p_type = 'ECONOMY ANODIZED STEEL'
group by o_year
order by o_year

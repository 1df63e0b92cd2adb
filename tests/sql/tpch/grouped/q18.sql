select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, quantity
from customer,
    (select o_orderkey, o_custkey, o_orderdate, o_totalprice from orders
        group by o_orderkey, o_custkey, o_orderdate, o_totalprice) as placed,
    (select l_orderkey, sum(l_quantity) as quantity from lineitem group by l_orderkey
        having sum(l_quantity) > 300) as large
where c_custkey = o_custkey and o_orderkey = l_orderkey
order by o_totalprice desc, o_orderdate
limit 100

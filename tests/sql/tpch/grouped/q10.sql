select c_custkey, c_name, sum(volume) as revenue, c_acctbal, n_name, c_address, c_phone, c_comment
from customer, nation,
    (select o_orderkey, o_custkey from orders
        where o_orderdate >= date '1993-10-01' and o_orderdate < date '1993-10-01' + interval '3' month
        group by o_orderkey, o_custkey) as placed,
    (select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as volume from lineitem where l_returnflag = 'R'
        group by l_orderkey) as returned
where c_custkey = o_custkey and l_orderkey = o_orderkey and c_nationkey = n_nationkey
group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
order by revenue desc
limit 20

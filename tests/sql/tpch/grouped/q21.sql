with lines as (
    select l_orderkey, l_suppkey, count(*) filter (where l_receiptdate > l_commitdate) as late
    from lineitem
    group by l_orderkey, l_suppkey
),
together as (
    select l_orderkey as orderkey, count(*) as suppliers, count(*) filter (where late > 0) as late_suppliers
    from lines
    group by l_orderkey
)
select s_name, sum(late)::bigint as numwait
from supplier, lines, together, nation,
    (select o_orderkey from orders where o_orderstatus = 'F' group by o_orderkey) as finished
where s_suppkey = l_suppkey and o_orderkey = l_orderkey and orderkey = l_orderkey
    and late > 0 and suppliers > 1 and late_suppliers = 1 and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
group by s_name
order by numwait desc, s_name
limit 100

select sum(price) / 7.0 as avg_yearly
from part,
    (select l_partkey, l_quantity, sum(l_extendedprice) as price from lineitem group by l_partkey, l_quantity) as lines,
    (select l_partkey as partkey, 0.2 * avg(l_quantity) as little from lineitem group by l_partkey) as usual
where p_partkey = l_partkey and p_partkey = partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
    and l_quantity < little

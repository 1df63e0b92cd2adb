-- Local items: who sells something of a category in one of three states, and what.
select p.name, p.city, p.state, a.id
from auction a join person p on p.id = a.seller
where a.category = 10 and p.state in ('OR', 'ID', 'CA')

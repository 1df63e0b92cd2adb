"""Rules that turn subqueries and LATERAL into joins.

1. ``join_existing`` is one of ``RULES``: EXISTS in a filter becomes a semi or anti join.
2. ``decorrelate`` (for continuous views) and ``unnest`` (for engines without correlated subqueries), both in
   ``decorrelate``, remove the rest, from the innermost subquery out.
3. ``correlation.pull`` takes the predicates that use an enclosing row out of a subquery.
4. ``subquery_columns`` joins subqueries to one relation, and ``lateral_joins`` handles LATERAL.
5. Where no special form fits, ``subquery_joins`` and ``dependent_joins`` apply Neumann and Kemper's general method;
   ``domain_inputs`` reduces the relation over whose distinct values a subquery is computed.

``inline_shared`` copies WITH queries into each place that reads them.
"""

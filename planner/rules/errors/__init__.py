"""Rules that decide for which rows an expression that may raise an error is evaluated, as PostgreSQL decides it.

``guard_arguments`` and ``guard_subqueries`` run once, before all other rules: they copy the condition under which
PostgreSQL evaluates an aggregate's argument or a subquery to where an engine sees it. ``raise_errors`` runs once at the
end, and raises the errors of constants that are left. ``planner.algebra.failures`` tells what may raise.
"""

"""What Millstream adds to PostgreSQL's own rows of each system relation, one file per family of relations.

A function named like the relation yields its rows from one version of the catalog; ``catalog.system`` lists them all.
"""

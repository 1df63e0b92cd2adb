"""With whom: parts of views that are maintained once for several of them (iShare).

1. ``join_parts.parts_of`` finds the joined tables in a view's relation, ``common`` what two views have of them.
2. ``benefit.saved_by_sharing`` estimates what a change takes with a shared part and without.
3. ``join_parts.reading`` has a view's relation read the rows of a part.
"""

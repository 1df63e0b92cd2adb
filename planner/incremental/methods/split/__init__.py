"""Split maintenance (thesis 4.2.1): what rows of a stream add to a grouping is kept, the rest is computed at the read.

    G(R join static)'  =  merge(G(R join static), G(dR join static))        kept, as a state
    final(G)           computed from the state when the view is read

1. ``regions`` takes the pipeline below the first grouping above a stream apart: a Delta of the stream, and Snapshots
   of the static relations that it meets (``components``, ``statics``).
2. ``groupings`` makes states of the grouping's partial aggregates, and the statements that fill them.
3. ``reading`` gives the grouping's rows back from the states; ``split`` is the method's interface.
"""

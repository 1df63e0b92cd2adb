"""From a call's name and argument types to the function of ours that computes it.

``signatures`` and ``operator_signatures`` list PostgreSQL's functions and operators that Millstream has. ``overloads``
finds among them what PostgreSQL would choose (``planner.bind.conversion.resolution``), ``choice`` reports the errors,
``polymorphic`` fills in anyelement and its kin, and ``call_forms`` makes the call.
"""

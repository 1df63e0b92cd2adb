"""SQL text to programs and plans: pure functions, without I/O.

The life of a statement:

1. ``parse.parser.parse`` reads the text with PostgreSQL's own parser; ``parse.literals`` finds the key under which
   texts that differ only in their constants share a plan.
2. ``bind.bind`` resolves names and types against a catalog. The result is a ``statements`` class, and its
   relations are ``algebra``.
3. ``scales`` adds the decimals that a numeric without a declared scale shows.
4. ``rules.optimise`` rewrites a relation into an equal, cheaper one.
5. ``incremental.plan`` takes the query of a continuous view apart into a program: what is kept, and how.
6. ``separation.cuts.cut`` cuts a long query into pipelines, between which it can stop and move.
7. ``lowering.lowered`` replaces what an engine lacks; the executor prints the rest in the engine's SQL.
8. ``explain`` writes plans, programs and changes as text.
"""

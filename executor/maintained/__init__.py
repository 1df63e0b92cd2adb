"""Views whose rows are kept up to date, instead of being computed at each read.

1. ``expanded_views`` gives a view's relation over tables and states alone, and ``dataflow_choice`` the dataflow by
   which its rows are to follow changes.
2. ``maintained_views`` decides which rows are kept, by what reads take either way (``read_costs``) and by memory.
   ``decisions`` remembers what was decided.
3. ``fills`` makes the rows of large views in the background, by the queries of ``fill_queries``.
4. ``kept_rows`` brings rows forward by the inputs' changes, when they are read, or soon after
   (``background_following``). Rows that do not fit into memory are looked up (``table_look_ups``).
5. Joins that several views have in common are kept once: ``shared_parts`` chooses which, ``sharing`` knows which views
   read them.
6. ``saved_views`` saves rows at a stop for the next start.
"""

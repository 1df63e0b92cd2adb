"""PySpark as the pipeline engine: the work that can wait, in a driver process that may die without harm.

``engine`` prints programs (``dialect``) and asks ``process``, which owns the child; in the child ``driver`` answers
requests (``frames``) with ``session`` and ``jobs``. Only the child imports pyspark.
"""

"""Functions in Spark SQL, a file for each family. ``scalar.FUNCTIONS`` lists what views may use; ``arrays`` and
``floats`` are for queries alone.
"""

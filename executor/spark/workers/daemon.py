"""The process from which Spark forks its Python workers: ``python -m executor.spark.workers.daemon``.

It takes the place of pyspark's own daemon and imports the kernel once, before the first fork, which saves each worker a
second. The only thread that the import starts is the allocator's, which supports forks. The engine's instance is made
in the worker.
"""

from __future__ import annotations

import importlib
import os

from pyspark.daemon import manager

if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or numpy starts a thread
    importlib.import_module("executor.embedded.kernel")
    manager()

"""What Spark forks its Python workers from: ``python -m executor.spark.daemon``, in the place of pyspark's own.

Owns: that the kernel is imported once, before the first fork, which saves each worker a second. The only thread that
this starts is the allocator's, which knows of forks; the engine's instance is made in the worker.
"""

from __future__ import annotations

import importlib
import os

from pyspark.daemon import manager

if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or numpy starts a thread
    importlib.import_module("executor.embedded.kernel")
    manager()

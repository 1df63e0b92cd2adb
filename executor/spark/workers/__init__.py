"""What runs in Spark's Python workers: ``kernel_calls`` computes batches with the embedded engine's kernel, ``daemon``
forks workers that have imported it, and ``kernel_archive`` ships our packages to workers on other machines.
"""

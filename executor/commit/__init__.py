"""The sequencer and the log: where a transaction becomes durable and visible (architecture section 4).

``records`` says what a transaction consists of, ``encoding`` and ``frames`` turn it into bytes, ``log`` keeps them in
``segment`` files, ``sequencer`` hands out LSNs, writes and publishes, ``recovery`` reads what was written. The package
does not know what the rows mean or which components read them.
"""

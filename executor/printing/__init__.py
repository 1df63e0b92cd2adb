"""Algebra as SQL, as far as both engines share it: ``printer`` walks relations and ``selects`` shapes them, with each
engine's ``dialect``, and ``nodes``, ``literals`` and ``floats`` to build from.
"""

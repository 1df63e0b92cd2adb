"""Names of traces and of their columns: readable, and unique within their owner."""

from __future__ import annotations

from collections import Counter


class Names:
    """Hands out names; one that is taken gets a number."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()

    def unique(self, wanted: str) -> str:
        """The wanted name, or the first of wanted_2, wanted_3, ... that is free."""
        name = wanted
        while self._uses[name]:
            self._uses[wanted] += 1
            name = f"{wanted}_{self._uses[wanted]}"
        self._uses[name] += 1
        return name

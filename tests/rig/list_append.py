"""Checks the isolation of transactions that append unique values to lists and read them.

Each list's longest read tells the order in which values were appended to it, so that for each two transactions it is
known where one wrote what the other overwrote (ww) or read (wr), or read what the other then changed (rw). Circles of
such dependencies are the phenomena of Adya's thesis, found as Elle does (Kingsbury and Alvaro, "Elle: Inferring
Isolation Anomalies from Experimental Observations", VLDB 2020).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

Dependency = Literal["ww", "wr", "rw"]


class Append(NamedTuple):
    """A value appended to a list."""

    key: int
    value: int


class Read(NamedTuple):
    """A list as it was read."""

    key: int
    values: tuple[int, ...]


class Transaction(NamedTuple):
    """What a transaction did; ``committed`` None: unknown."""

    number: int
    operations: tuple[Append | Read, ...]
    committed: bool | None


#: The phenomena that each level must prevent.
FORBIDDEN: Final[Mapping[str, frozenset[str]]] = {
    "READ COMMITTED": frozenset({"G0", "G1a", "G1b", "G1c", "lost value", "doubled value", "different orders"}),
    "REPEATABLE READ": frozenset(
        {"G0", "G1a", "G1b", "G1c", "G-single", "lost update", "lost value", "doubled value", "different orders",
         "non-repeatable read"}
    ),
    "SERIALIZABLE": frozenset(
        {"G0", "G1a", "G1b", "G1c", "G-single", "G2", "lost update", "lost value", "doubled value",
         "different orders", "non-repeatable read"}
    ),
}  # fmt: skip


def phenomena(transactions: Sequence[Transaction], final: Mapping[int, tuple[int, ...]]) -> dict[str, str]:
    """The phenomena of a history, each with one example; ``final`` are the lists after it."""
    found: dict[str, str] = {}
    for name, example in (*_of_values(transactions, final), *_of_circles(transactions, final)):
        found.setdefault(name, example)
    return found


def _of_values(transactions: Sequence[Transaction], final: Mapping[int, tuple[int, ...]]) -> Iterator[tuple[str, str]]:
    """Phenomena that single reads show."""
    appended = {
        operation: each for each in transactions for operation in each.operations if isinstance(operation, Append)
    }
    for key, values in final.items():
        if len(set(values)) < len(values):
            yield "doubled value", f"{key}: {values}"
    for operation, each in appended.items():
        if each.committed and operation.value not in final.get(operation.key, ()):
            yield "lost value", f"{operation} of {each.number}"
        if each.committed is False and operation.value in final.get(operation.key, ()):
            yield "G1a", f"{operation} of {each.number}, which failed"
    for each in transactions:
        own: dict[int, list[int]] = {}
        seen: dict[int, tuple[int, ...]] = {}
        for operation in each.operations:
            if isinstance(operation, Append):
                own.setdefault(operation.key, []).append(operation.value)
                continue
            mine = own.get(operation.key, [])
            others = operation.values[: len(operation.values) - len(mine)]
            if list(operation.values[len(others) :]) != mine or set(mine) & set(others):
                yield "lost update", f"{each.number} read {operation} after it had appended {mine}"
            if seen.setdefault(operation.key, others) != others:
                yield "non-repeatable read", f"{each.number}: {seen[operation.key]}, then {others}"
            if each.committed is not False and final.get(operation.key, ())[: len(others)] != others:
                yield "different orders", f"{each.number} read {operation}, at the end {final.get(operation.key)}"
            for value in others:
                writer = appended.get(Append(operation.key, value))
                if writer is not None and writer.committed is False:
                    yield "G1a", f"{each.number} read {value} of {writer.number}, which failed"
            if others:
                writer = appended.get(Append(operation.key, others[-1]))
                last = [] if writer is None else [
                    item.value for item in writer.operations if isinstance(item, Append) and item.key == operation.key
                ]  # fmt: skip
                if last and last[-1] != others[-1]:
                    yield "G1b", f"{each.number} read {others[-1]}, in the middle of {last}"


def _of_circles(transactions: Sequence[Transaction], final: Mapping[int, tuple[int, ...]]) -> Iterator[tuple[str, str]]:
    """Phenomena that several transactions show together."""
    graph = _dependencies([each for each in transactions if each.committed is not False], final)
    for name, kinds, most in (("G0", {"ww"}, 0), ("G1c", {"ww", "wr"}, 0), ("G-single", {"ww", "wr", "rw"}, 1)):
        circle = _circle(graph, kinds, most)
        if circle:
            yield name, str(circle)
            return
    circle = _circle(graph, {"ww", "wr", "rw"}, len(graph))
    if circle:
        yield "G2", str(circle)


def _dependencies(
    transactions: Iterable[Transaction], final: Mapping[int, tuple[int, ...]]
) -> dict[int, dict[int, set[Dependency]]]:
    """For each transaction, those that must come after it, and why."""
    transactions = list(transactions)
    writers = {
        operation: each.number
        for each in transactions
        for operation in each.operations
        if isinstance(operation, Append)
    }
    graph: dict[int, dict[int, set[Dependency]]] = {each.number: {} for each in transactions}

    def note(first: int | None, second: int | None, kind: Dependency) -> None:
        if first is not None and second is not None and first != second:
            graph[first].setdefault(second, set()).add(kind)

    for key, values in final.items():
        known = [writers.get(Append(key, value)) for value in values]
        for first, second in itertools.pairwise(known):
            note(first, second, "ww")
    for each in transactions:
        for operation in each.operations:
            if isinstance(operation, Read):
                values = final.get(operation.key, ())
                foreign = [
                    value for value in operation.values if writers.get(Append(operation.key, value)) != each.number
                ]
                if foreign:
                    note(writers.get(Append(operation.key, foreign[-1])), each.number, "wr")
                behind = [
                    value
                    for value in values[len(foreign) :]
                    if value not in operation.values and writers.get(Append(operation.key, value)) != each.number
                ]
                if behind:
                    note(each.number, writers.get(Append(operation.key, behind[0])), "rw")
    return graph


def _circle(graph: Mapping[int, Mapping[int, set[Dependency]]], kinds: set[str], most: int) -> list[int]:
    """A circle of dependencies of some kinds with at most this many read-write ones; the shortest through any node."""
    for start in graph:
        frontier = [(start, 0)]
        before: dict[tuple[int, int], tuple[int, int] | None] = {(start, 0): None}
        while frontier:
            node, used = state = frontier.pop(0)
            for other, why in graph[node].items():
                for kind in why & kinds:
                    cost = min(used + (kind == "rw"), most + 1) if most < len(graph) else 0
                    if cost > most:
                        continue
                    if other == start:
                        path = [start]
                        at: tuple[int, int] | None = state
                        while at is not None:
                            path.append(at[0])
                            at = before[at]
                        return path[::-1]
                    if (other, cost) not in before:
                        before[other, cost] = state
                        frontier.append((other, cost))
    return []

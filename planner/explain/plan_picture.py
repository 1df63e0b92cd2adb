"""How a continuous view is maintained, as a picture (SVG): what changes on the left, the view on the right.

A box is a trace: a relation that changes, a state, or the rows of a node, the higher the more rows it keeps. An arrow
is the work of bringing changes from one to the next, the thicker the more milliseconds a change takes there, measured
or else estimated; the dearest is red.

Owns the graph of a view and where its parts are drawn. What is known of them is in ``ShownView``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log10
from textwrap import shorten, wrap
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from planner.algebra.nodes import Delta, Scan, Snapshot
from planner.algebra.walk import walk
from planner.explain.dataflows import how_of
from planner.explain.views import ShownView
from planner.incremental.dataflow.graph import Dataflow, Shared, Source

#: Pixels: the width of a box, its least height and that for each power of ten of rows; what lies between columns and
#: between boxes; and a line of text.
_WIDTH: Final = 210
_HEIGHT: Final = 58
_TENFOLD: Final = 9
_GAP: Final = (90, 26)
_LINE: Final = 14
_MARGIN: Final = 20
#: Pixels between arrows that pass below boxes.
_LANE: Final = 18
#: Characters of a line in a box.
_CHARACTERS: Final = 32
#: Pixels of the thickest arrow.
_THICKEST: Final = 10.0
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#222}.name{font-weight:bold}.rows{fill:#666}"
    "rect{fill:#f5f7fa;stroke:#8a94a6}.view rect{fill:#e3f0e3}path{fill:none;stroke:#8a94a6}.dearest{stroke:#c0392b}"
)


class Box(Struct, frozen=True):
    """A trace: its name, what it is, and how many rows it keeps, if that is known."""

    name: str
    about: str = ""
    rows: int | None = None
    is_view: bool = False


class Arrow(Struct, frozen=True):
    """The work between two boxes, by their keys, in milliseconds of a change; None where nothing is known."""

    start: str
    end: str
    milliseconds: float | None = None


class Graph(Struct, frozen=True):
    """Boxes by key, and the arrows between them."""

    boxes: Mapping[str, Box]
    arrows: Sequence[Arrow]


def plan_svg(view: ShownView) -> str:
    """A view as an SVG document."""
    return drawn(graph_of(view))


def graph_of(view: ShownView) -> Graph:
    """The traces of a view, and the work between them."""
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for path in view.program.paths:
        for statement in path.statements:
            state = statement.target
            rows = None if view.known.rows is None else view.known.rows.get(statement.target)
            boxes[state] = Box(_called(view, state), statement.method, rows)
            work = view.known.work.get((path.id, statement.target))
            taken = work.total.milliseconds / work.changes if work is not None and work.changes else None
            for name in dict.fromkeys(node.name for node in walk(statement.relation) if isinstance(node, Delta)):
                boxes.setdefault(name, Box(name, "stream"))
                arrows.append(Arrow(name, state, taken))
    flow = view.planned.dataflow
    boxes["view"] = Box(view.name, "the rows of the view", is_view=True)
    if flow is None:
        arrows += [Arrow(name, "view", view.measured.computed) for name in _read(view, boxes)]
        return Graph(boxes, arrows)
    _add_nodes(view, flow, boxes, arrows)
    return Graph(boxes, arrows)


def _called(view: ShownView, name: str) -> str:
    """A state as the picture calls it."""
    key = next((state.key for state in view.program.states if state.name == name), ())
    return f"state by {', '.join(column.name for column in key)}" if key else "state"


def _state_of(view: ShownView, trace: str) -> str:
    """The state of the view that a leaf of its dataflow reads, whose name there has more in front."""
    return next((state.name for state in view.program.states if trace.endswith(state.name)), trace)


def _read(view: ShownView, boxes: dict[str, Box]) -> list[str]:
    """The boxes of what a view's final relation reads."""
    found = dict[str, None]()
    for leaf in walk(view.program.final):
        if isinstance(leaf, Scan):
            boxes.setdefault(leaf.name, Box(leaf.name, leaf.kind))
            found[leaf.name] = None
        elif isinstance(leaf, Snapshot):
            found[leaf.trace] = None
    return [name for name in found if name in boxes]


def _add_nodes(view: ShownView, flow: Dataflow, boxes: dict[str, Box], arrows: list[Arrow]) -> None:
    facts, keys = view.nodes, dict[int, str]()
    for node in flow.nodes:
        rows = None if facts.kept is None else facts.kept.get(node.id)
        if isinstance(node, Source):
            leaf = node.definition
            key = keys[node.id] = leaf.name if isinstance(leaf, Scan) else _state_of(view, leaf.trace)
            box = Box(leaf.name, leaf.kind, rows) if isinstance(leaf, Scan) else Box("state", "of a view below", rows)
            boxes.setdefault(key, box)
            continue
        if isinstance(node, Shared):
            keys[node.id] = keys[node.node]
            continue
        key = keys[node.id] = f"node {node.id}"
        boxes[key] = Box(key, how_of(node), rows)
        taken = _milliseconds(view, node.id)
        below = dict.fromkeys(keys[item] for item in getattr(node, "inputs", ()))
        arrows += [Arrow(item, key, taken) for item in below]
    arrows += [Arrow(keys[node], "view") for node in flow.outputs]


def _milliseconds(view: ShownView, node: int) -> float | None:
    """Those of a change at a node, as measured, or as expected."""
    work, expected = view.nodes.work.get(node), view.nodes.expected
    if work is not None and work.changes:
        return work.total.milliseconds / work.changes
    step = None if expected is None else expected.nodes.get(node)
    return None if step is None else step.milliseconds


# --- drawing ----------------------------------------------------------------------------------------------------------


class _Place(Struct, frozen=True):
    x: float
    y: float
    height: float


def drawn(graph: Graph) -> str:
    """A graph without cycles as an SVG document."""
    places = _places(graph)
    lines, lowest = _lines_of(graph, places)
    width = max(place.x for place in places.values()) + _WIDTH + _MARGIN
    height = lowest + _MARGIN
    most = max((arrow.milliseconds or 0.0 for arrow in graph.arrows), default=0.0)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}">']
    parts += [f"<style>{_STYLE}</style>"]
    parts += [_arrow(arrow, line, most) for arrow, line in zip(graph.arrows, lines, strict=True)]
    parts += [_box(key, box, places[key]) for key, box in graph.boxes.items()]
    return "\n".join([*parts, "</svg>"])


def _places(graph: Graph) -> dict[str, _Place]:
    """Where boxes are: each to the right of all that it reads, near the middle of these."""
    columns = _columns(graph)
    places: dict[str, _Place] = {}
    for number in sorted(set(columns.values())):
        y = float(_MARGIN)
        keys = [key for key in graph.boxes if columns[key] == number]
        for key in sorted(keys, key=lambda key: _middle(key, graph, places)):
            rows = graph.boxes[key].rows
            place = _Place(
                _MARGIN + number * (_WIDTH + _GAP[0]), y, _HEIGHT + _TENFOLD * log10(1 + rows) if rows else _HEIGHT
            )
            places[key] = place
            y += place.height + _GAP[1]
    return places


def _columns(graph: Graph) -> dict[str, int]:
    """By box, how many are in front of it at most."""
    below: dict[str, list[str]] = {key: [] for key in graph.boxes}
    for arrow in graph.arrows:
        below[arrow.end].append(arrow.start)
    found: dict[str, int] = {}
    while len(found) < len(below):  # as there is no cycle, each round finds one
        for key, starts in below.items():
            if key not in found and all(start in found for start in starts):
                found[key] = 1 + max((found[start] for start in starts), default=-1)
    for key, starts in below.items():  # what reads nothing stands beside its first reader
        ends = [found[arrow.end] for arrow in graph.arrows if arrow.start == key]
        if not starts and ends:
            found[key] = min(ends) - 1
    return found


def _middle(key: str, graph: Graph, places: Mapping[str, _Place]) -> float:
    starts = [places[arrow.start].y for arrow in graph.arrows if arrow.end == key and arrow.start in places]
    return sum(starts) / len(starts) if starts else 0.0


def _lines_of(graph: Graph, places: Mapping[str, _Place]) -> tuple[list[str], float]:
    """The lines of arrows, those over several columns below all boxes; and how far down they reach."""
    lowest = max(place.y + place.height for place in places.values())
    found = []
    for arrow in graph.arrows:
        start, end = places[arrow.start], places[arrow.end]
        x, y, to_x, to_y = start.x + _WIDTH, start.y + start.height / 2, end.x, end.y + end.height / 2
        if to_x - x <= _GAP[0]:
            found.append(_curve(x, y, to_x, to_y))
            continue
        lowest += _LANE
        found.append(
            f"{_curve(x, y, x + _GAP[0], lowest)}L{to_x - _GAP[0]:.0f} {lowest:.0f}"
            f"{_curve(to_x - _GAP[0], lowest, to_x, to_y, is_first=False)}"
        )
    return found, lowest


def _curve(x: float, y: float, to_x: float, to_y: float, is_first: bool = True) -> str:
    bend = (to_x - x) / 2
    start = f"M{x:.0f} {y:.0f}" if is_first else ""
    return f"{start}C{x + bend:.0f} {y:.0f} {to_x - bend:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"


def _arrow(arrow: Arrow, line: str, most: float) -> str:
    taken = arrow.milliseconds or 0.0
    thickness = 1 + (_THICKEST - 1) * taken / most if most else 1.0
    name = ' class="dearest"' if most and taken == most else ""
    told = "" if arrow.milliseconds is None else f"<title>{taken:,.3f} ms for a change</title>"
    return f'<path{name} d="{line}" stroke-width="{thickness:.1f}">{told}</path>'


def _box(key: str, box: Box, place: _Place) -> str:
    lines = list(_lines(box))
    texts = [
        f'<text class="{kind}" x="{place.x + 8:.0f}" y="{place.y + 16 + _LINE * number:.0f}">{escape(text)}</text>'
        for number, (kind, text) in enumerate(lines)
    ]
    rect = f'<rect x="{place.x:.0f}" y="{place.y:.0f}" width="{_WIDTH}" height="{place.height:.0f}" rx="4"/>'
    group = ' class="view"' if box.is_view else ""
    return f"<g{group} id={quoteattr(key)}><title>{escape(box.about)}</title>{rect}{''.join(texts)}</g>"


def _lines(box: Box) -> Iterator[tuple[str, str]]:
    yield "name", shorten(box.name, _CHARACTERS, placeholder=" ...")
    about = wrap(box.about, _CHARACTERS)
    most = 2 if box.rows is None else 1
    yield from (("about", text) for text in about[: most - 1])
    if len(about) >= most:
        yield "about", about[most - 1] if len(about) == most else f"{about[most - 1]} ..."
    if box.rows is not None:
        yield "rows", f"{box.rows:,} row{'s' * (box.rows != 1)} kept"

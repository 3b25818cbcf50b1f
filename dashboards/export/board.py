"""A board before it is Grafana's: rows of panels over any data source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

GREEN: Final = "green"
ORANGE: Final = "orange"
RED: Final = "red"
BLUE: Final = "blue"

ValueTexts = Mapping[int, tuple[str, str]]
"""A value's text and colour, instead of the value."""


class PanelKind(Enum):
    """How a panel looks: a number, the names of the series themselves (such as a verdict), lines, or a table."""

    NUMBER, WORD, LINES, TABLE = range(4)


class Form(Enum):
    """What a column holds; of AGO, a time, only its distance from now matters."""

    TEXT, NUMBER, SECONDS, TIME, AGO = range(5)


_FORMS: Final[Mapping[Form, frozenset[str]]] = {
    Form.AGO: frozenset({"round_time"}),
    Form.TIME: frozenset({"since", "record_time", "time"}),
    Form.SECONDS: frozenset({"Value", "time_behind_seconds_min", "time_behind_seconds_max"}),
    Form.NUMBER: frozenset(
        {
            "interval_ms", "groups", "held_partitions", "health", "lag", "lag_total", "lag_max", "lag_unknown",
            "members", "drifted_count", "unknown", "partition", "partition_count", "committed_offset", "number",
            "high_watermark", "partitions_moved", "partitions_moved_optimal", "unassigned_partition_seconds_min",
        }
    ),
}  # fmt: skip


def form_of(column: str) -> Form:
    """What a column holds, by its name; all others hold texts."""
    return next((form for form, names in _FORMS.items() if column in names), Form.TEXT)


HEALTH: Final[ValueTexts] = {
    3: ("critical", RED),
    2: ("warning", ORANGE),
    1: ("unknown", "purple"),
    0: ("ok", GREEN),
    -1: ("no members", "text"),
}
"""Colours and words of the column health of groups.sql."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A query of a panel (PromQL or SQL), and the name of its series, with `{{label}}`; "" where columns name them."""

    text: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: Its title.
        told: What it shows and what it does not, in a sentence or two.
        kind: How it looks. Only lines ask for a range of time: all others ask for the present, so that a value which is
            no longer served disappears instead of standing there as if it were fresh.
        asks: Its queries.
        width: Columns of 24.
        height: Grafana's units of 30 pixels.
        unit: Grafana's id of a unit.
        steps: From which value on it has which colour, ascending; the first is the colour below all others.
        words: A value's text and colour, instead of the value.
        without: What a panel says that has no value.
        columns: Columns of the answer that are shown, in order, with their titles; None shows all as they are.
    """

    title: str
    told: str
    kind: PanelKind
    asks: Sequence[Ask]
    width: int = 12
    height: int = 8
    unit: str = "short"
    steps: Sequence[tuple[float | None, str]] = ((None, BLUE),)
    words: ValueTexts = field(default_factory=dict)
    without: str | None = None
    columns: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ExportedBoard:
    """A board.

    Attributes:
        uid: What Grafana knows it by: a board that is imported again replaces itself.
        title: Its title.
        told: What it is.
        source: The plugin that answers its queries.
        choices: Its variables: name in the queries, name for people, and the query that lists its values; a later one
            may use an earlier one.
        rows: Its panels by the headings above them.
    """

    uid: str
    title: str
    told: str
    source: str
    choices: Sequence[tuple[str, str, str]]
    rows: Mapping[str, Sequence[Panel]]

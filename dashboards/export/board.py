"""A board before it is Grafana's: rows of panels."""

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


@dataclass(frozen=True, slots=True)
class Ask:
    """A query of a panel in PromQL, and the name of its series, with `{{label}}`; "" where columns name them."""

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
        choices: Its variables: name in the queries, name for people, and the query that lists its values; a later one
            may use an earlier one.
        rows: Its panels by the headings above them.
    """

    uid: str
    title: str
    told: str
    choices: Sequence[tuple[str, str, str]]
    rows: Mapping[str, Sequence[Panel]]

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


class PanelKind(Enum):
    """How a panel looks."""

    NUMBER = "number"
    WORD = "word"
    """The names of the series themselves, such as a verdict."""
    LINES = "lines"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Ask:
    """One query of a panel.

    Attributes:
        text: PromQL or SQL.
        legend: Name of a series, with `{{label}}`; "" where the columns name themselves.
    """

    text: str
    legend: str = ""


class Form(Enum):
    """What a column holds."""

    TEXT = "text"
    NUMBER = "number"
    SECONDS = "seconds"
    TIME = "time"
    AGO = "ago"
    """A time, of which only its distance from now matters."""


@dataclass(frozen=True, slots=True)
class ExportedColumn:
    """A column of a table, or a line.

    Attributes:
        title: Its name for people.
        form: What it holds.
        words: A value's text and colour, instead of the value.
    """

    title: str
    form: Form = Form.TEXT
    words: Mapping[int, tuple[str, str]] = field(default_factory=dict)


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
        columns: Columns of the answer that are shown, in order; None shows all as they are.
        holds: For lines: whether a value holds until the next one.
    """

    title: str
    told: str
    kind: PanelKind
    asks: Sequence[Ask]
    width: int = 12
    height: int = 8
    unit: str = "short"
    steps: Sequence[tuple[float | None, str]] = ((None, BLUE),)
    words: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    without: str | None = None
    columns: Mapping[str, ExportedColumn] | None = None
    holds: bool = False


@dataclass(frozen=True, slots=True)
class PanelRow:
    """Panels under one heading."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Choice:
    """A variable that the viewer chooses.

    Attributes:
        name: Its name in the queries.
        label: Its name for people.
        query: What lists its values.
    """

    name: str
    label: str
    query: str


@dataclass(frozen=True, slots=True)
class ExportedBoard:
    """A board.

    Attributes:
        uid: What Grafana knows it by: a board that is imported again replaces itself.
        title: Its title.
        told: What it is.
        source: The plugin that answers its queries.
        choices: Its variables; a later one may use an earlier one.
        rows: Its rows.
    """

    uid: str
    title: str
    told: str
    source: str
    choices: Sequence[Choice]
    rows: Sequence[PanelRow]

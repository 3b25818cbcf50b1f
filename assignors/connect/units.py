"""What Connect's workers are given: connectors, and the tasks of connectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from assignors.order import utf16

CONNECTOR: Final = -1
"""Number of the unit that is a connector itself (`ConnectProtocol.CONNECTOR_TASK`); tasks count from 0."""

Unit = tuple[str, int]
"""A connector's name with the number of a task, or with `CONNECTOR`."""


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """Each unit once, by name as Java compares strings, then by number (`ConnectorTaskId.compareTo`)."""
    return sorted(set(units), key=lambda unit: (utf16(unit[0]), unit[1]))


def connectors_in(units: Iterable[Unit]) -> list[Unit]:
    """The connectors among these units."""
    return [unit for unit in units if unit[1] == CONNECTOR]


def tasks_in(units: Iterable[Unit]) -> list[Unit]:
    """The tasks among these units."""
    return [unit for unit in units if unit[1] != CONNECTOR]

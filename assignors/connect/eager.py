"""What Connect's workers are given, and the eager protocol's way to deal it.

They are given connectors, and the tasks of connectors. The eager assignor deals all connectors, then all tasks, in turn
to the workers by member id. Source: `EagerAssignor` of connect-runtime 4.3.1; the same since 0.10 (there in
`WorkerCoordinator`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import Final

from assignors.order import sorted_utf16, utf16

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


def assign_eagerly(configured: Iterable[Unit], workers: Iterable[str]) -> dict[str, list[Unit]]:
    """What each worker gets.

    Args:
        configured: All connectors and tasks.
        workers: Member ids, at least one.
    """
    ordered, names = in_order(configured), sorted_utf16(workers)
    given: dict[str, list[Unit]] = {name: [] for name in names}
    for unit, name in zip((*connectors_in(ordered), *tasks_in(ordered)), cycle(names), strict=False):
        given[name].append(unit)
    return given

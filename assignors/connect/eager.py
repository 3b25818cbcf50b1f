"""The eager protocol's assignor: all connectors, then all tasks, in turn to the workers by member id.

Source: `EagerAssignor` of connect-runtime 4.3.1; the same since 0.10 (there in `WorkerCoordinator`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from assignors.connect.units import Unit, connectors_in, in_order, tasks_in
from assignors.order import sorted_utf16


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

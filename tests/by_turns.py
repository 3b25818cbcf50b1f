"""The order in which several processes run the tests (`make test`, `make soak`): in groups, the longest first.

A group stays in one process, in its order. By default it is a module, so that a module's fixtures are set up once; a
test can choose another:

    @pytest.mark.xdist_group("recorded")    a named group, with tests of other modules
    @pytest.mark.turn(1)                    the group's turn; the earliest turn of its tests counts

A run ends when its last group ends, so long groups have the first turns:

    0     long tests (`make soak`) of more than eight minutes
    1     the recorded run, which takes two minutes to play
    2, 3  tests of more than a minute, of more than half a minute
    4, 5  tests that read the recorded run, which exists by then
    6     tests of more than ten seconds
    all other tests have no turn, and come last
"""

from __future__ import annotations

import pytest
from _pytest.nodeid import NodeId
from xdist.scheduler import LoadScopeScheduling

__all__ = ["ByTurns", "group_of", "in_turn"]

_LAST = 9


def in_turn(items: list[pytest.Item]) -> None:
    """Sort the groups by turn, and the tests within each group."""
    turns: dict[str, int] = {}
    for item in items:
        turns[group_of(item)] = min(_turn(item), turns.get(group_of(item), _LAST))
    begins = {group: place for place, group in enumerate(sorted(turns, key=turns.__getitem__))}
    items.sort(key=lambda item: (begins[group_of(item)], _turn(item)))
    for item in items:
        # xdist 3.8.0 passes a test's group to the scheduler in its name, in a field that pytest 9.2.0 no longer reads
        # (pytest-xdist issue 1386): without this every test of a group would be scheduled separately.
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]:
            item._id = NodeId.parse(f"{item.nodeid}@{group_of(item)}")


def _turn(item: pytest.Item) -> int:
    mark = item.get_closest_marker("turn")
    return int(mark.args[0]) if mark else _LAST


def group_of(item: pytest.Item) -> str:
    """The group of a test: its mark's, or its module."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark else _module(item.nodeid)


def _module(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


class ByTurns(LoadScopeScheduling):
    """Schedules groups in the order in which they were collected."""

    def __init__(self, *told: object) -> None:
        super().__init__(*told)  # type: ignore[arg-type]
        # The default order begins with the group of most tests, not with the longest.
        self.config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        # (xdist appends the group to a test's name.)
        at = nodeid.rfind("@")
        return nodeid[at + 1 :] if at > nodeid.rfind("]") else _module(nodeid)

"""How tests are dealt to several processes (`make test`): in groups, and those that last longest first.

A group stays in one process, in its order. It is a module, so that what a module sets up is set up once, unless a test
says otherwise:

    @pytest.mark.xdist_group("recorded")    in the group of that name, with tests of other modules
    @pytest.mark.turn(1)                    the group's turn, which is that of its earliest test

Turns, because a run is over when its last group is:

    1     the recorded run, which takes two minutes to play
    2, 3  what lasts more than a minute, more than half a minute
    4, 5  what reads the recorded run, which is there by then
    6     what lasts more than ten seconds
          the rest has no turn, and comes last
"""

from __future__ import annotations

import pytest
from _pytest.nodeid import NodeId
from xdist.scheduler import LoadScopeScheduling

__all__ = ["ByTurns", "in_turn"]

_LAST = 9


def in_turn(items: list[pytest.Item]) -> None:
    """Sort the groups by turn, and the tests in each."""
    turns: dict[str, int] = {}
    for item in items:
        turns[_group(item)] = min(_turn(item), turns.get(_group(item), _LAST))
    begins = {group: place for place, group in enumerate(sorted(turns, key=turns.__getitem__))}
    items.sort(key=lambda item: (begins[_group(item)], _turn(item)))
    for item in items:
        # xdist 3.8.0 tells the scheduler a test's group in its name, in a field that pytest 9.2.0 no longer reads
        # (pytest-xdist issue 1386): without this every test of a group would be dealt by itself.
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]:
            item._id = NodeId.parse(f"{item.nodeid}@{_group(item)}")


def _turn(item: pytest.Item) -> int:
    mark = item.get_closest_marker("turn")
    return int(mark.args[0]) if mark else _LAST


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark else _module(item.nodeid)


def _module(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


class ByTurns(LoadScopeScheduling):
    """Deals groups in the order in which they were collected."""

    def __init__(self, *told: object) -> None:
        super().__init__(*told)  # type: ignore[arg-type]
        # It would begin with what has the most tests, not with what lasts longest.
        self.config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        # (xdist writes a test's group behind its name.)
        at = nodeid.rfind("@")
        return nodeid[at + 1 :] if at > nodeid.rfind("]") else _module(nodeid)

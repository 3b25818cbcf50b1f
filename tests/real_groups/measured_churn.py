"""A real group that comes and goes as services do, and what its members say they own meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.oracle.members_process import MembersProcess, Told

_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which nobody owned a partition, ms of the steady clock.

    Attributes:
        since: Latest time at which it may have begun.
        earliest: Earliest time: a process that is killed ends between two moments.
        until: When the next member had it.
    """

    since: float
    earliest: float
    until: float


@dataclass
class Ownership:
    """The partitions of one group by what its members said."""

    told: list[Told] = field(default_factory=list)
    ends: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Members whose process was killed: when it was told to end and when it had, ns."""

    def gaps(self, place: str) -> list[Gap]:
        """The times without an owner of one partition, in order; one that had not ended is left out.

        A member that the coordinator has removed owns nothing, but a process that hung learns of it later. So if
        another member has the partition meanwhile, the time without an owner may have begun at any moment before.
        """
        found: list[Gap] = []
        owners: dict[str, float] = {}
        since = float("-inf"), float("-inf")
        for at, latest, word, member in sorted(self._events(place)):
            if word == "assigned":
                others = [began for other, began in owners.items() if other != member]
                if others:
                    found.append(Gap(at / _NS, max(others), at / _NS))
                elif not owners:
                    found.append(Gap(since[1], since[0], at / _NS))
                owners[member] = at / _NS
            elif owners.pop(member, None) is not None and not owners:
                since = at / _NS, latest / _NS
        return found

    def _events(self, place: str) -> Iterator[tuple[int, int, str, str]]:
        for told in self.told:
            if place in told.places:
                yield told.at, told.at, told.word, told.member
        for member, (asked, ended) in self.ends.items():
            yield asked, ended, "killed", member


def unowned(gaps: Sequence[Gap], decided: Iterable[float]) -> list[tuple[float, float] | None]:
    """How long nobody owned a partition in each rebalance: the shortest and the longest that was measured, ms.

    Args:
        gaps: Of the partition.
        decided: Time of each decision of the group, in order.

    Returns:
        None for a decision in none of whose gaps the partition was without an owner.
    """
    times = list(decided)
    found: list[tuple[float, float] | None] = []
    for index, at in enumerate(times):
        before = times[index - 1] if index else float("-inf")
        after = times[index + 1] if index + 1 < len(times) else float("inf")
        gap = next((gap for gap in gaps if gap.earliest <= at <= gap.until), None)
        if gap is None:
            found.append(None)
            continue
        until = gap.until if gap.until < after else at
        found.append((max(0.0, until - max(gap.since, before)), until - max(gap.earliest, before)))
    return found


_MOST_MEMBERS: Final = 5

_MEMBER = tuple[MembersProcess, str]

_REST_S: Final = (3, 8, 12, 16, 20)
"""Between two changes. Clients commit every 5 s, so before and after some of them nobody has."""

_BESIDE_S: Final = (0, 0, 0.5, 2, 4)
"""Between two changes that may become one rebalance."""

_FROZEN_S: Final = (3.0, 7.0)
"""How long a process hangs: others wait for its member, whose session (10 s) goes on."""


@dataclass
class MeasuredGroup:
    """One group; call `run` in a thread of its own, then `end`.

    Attributes:
        settings: Of its members' clients.
        topic: Its topic.
        partitions: Of the topic.
        main: The process of most members.
        opened: Opens a process of its own for a member that is to be killed or to hang.
        chance: Source of randomness.
        stop: Ends `run` early.
    """

    settings: dict[str, str]
    topic: str
    partitions: int
    main: MembersProcess
    opened: Callable[[], MembersProcess]
    chance: Random
    stop: threading.Event
    owned: Ownership = field(default_factory=Ownership)
    _members: list[_MEMBER] = field(default_factory=list)
    _apart: list[MembersProcess] = field(default_factory=list)

    @property
    def group(self) -> str:
        return self.settings["group.id"]

    def run(self, changes: int) -> None:
        """Change the group so often."""
        for start in (self._join, self._join, self._join_apart):
            start()
        self.stop.wait(10)
        for _ in range(changes):
            for _ in range(self.chance.choice((1, 1, 1, 1, 2, 2, 3))):
                if self.stop.is_set():
                    return
                self._change()
                self.stop.wait(self.chance.choice(_BESIDE_S))
            self.stop.wait(self.chance.choice(_REST_S))

    def end(self) -> None:
        """Let all members leave, and put down what they said; the main process ends later."""
        for process, name in self._members:
            process.stop(name)
        for process, name in self._members:
            assert process.closed(name).wait(30), f"a member of {self.group} does not close"
        for process in self._apart:
            process.__exit__(None, None, None)
        for process in (self.main, *self._apart):
            self.owned.told += [told._replace(member=_name(process, told.member)) for told in process.told]

    def _change(self) -> None:
        few, apart = len(self._members) < _MOST_MEMBERS, [one for one in self._members if one[0] is not self.main]
        several = len(self._members) > 1
        choices = [
            (6 if few else 0, self._join),
            (2 if few and not apart else 0, self._join_apart),
            (5 if several else 0, self._leave),
            (1 if several and apart else 0, self._kill),
            (1 if apart else 0, self._freeze),
        ]
        weights, changes = zip(*choices, strict=True)
        self.chance.choices(changes, weights)[0]()

    def _join(self) -> None:
        self._members.append((self.main, self.main.start([self.topic], self.settings)))

    def _join_apart(self) -> None:
        process = self.opened().__enter__()
        self._apart.append(process)
        self._members.append((process, process.start([self.topic], self.settings)))

    def _leave(self) -> None:
        process, name = self._members.pop(self.chance.randrange(len(self._members)))
        process.stop(name)

    def _one_apart(self) -> _MEMBER:
        return self.chance.choice([one for one in self._members if one[0] is not self.main])

    def _kill(self) -> None:
        process, name = one = self._one_apart()
        self._members.remove(one)
        asked = time.monotonic_ns()
        process.kill()
        self.owned.ends[_name(process, name)] = asked, time.monotonic_ns()

    def _freeze(self) -> None:
        process, _ = self._one_apart()
        process.pause()
        self.stop.wait(self.chance.uniform(*_FROZEN_S))
        process.resume()


def _name(process: MembersProcess, member: str) -> str:
    """A name for a member that no member of another process has."""
    return f"{id(process)}/{member}"

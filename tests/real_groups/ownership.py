"""Who owned what, as the members' own clients said it, and so for how long nobody did.

The clients' callbacks run where the members run, and the times are of the machine's one steady clock. A rebalance is
given what the bounds of its row are about (docs/verdicts.md, "Balance and cost"): the time from when the owner gave a
partition up, but not from before the decision before, to when the next owner had it or, if it never had it before it
had to give everything up again, to the decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.oracle.members_process import Told

__all__ = ["Gap", "Ownership", "unowned"]

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

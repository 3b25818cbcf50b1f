"""Two ranges of a topic's subscribers: the least loaded, who receive next, and the most loaded, who give next.

Follows `UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer` (4.0 and later).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

__all__ = ["Balancer"]


class Balancer:
    """Subscribers sorted by size; the left range grows to the right and the right one to the left.

    The members of a range take (or give) in turn; after all have, the range's level rises (falls) by one, and members
    at that level join it. Sizes are read live: the caller changes them between two calls, whenever it moves a
    partition. `next_takers` changes them itself; use it only on a balancer that is never asked for givers.

    Attributes:
        spread: Difference between the largest and the smallest size at the start.
    """

    def __init__(self, sizes: list[int], members: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=sizes.__getitem__)
        lowest, highest = sizes[self._members[0]], sizes[self._members[-1]]
        self.spread = highest - lowest
        self._low_end = 0
        self._low_level = lowest - 1
        self._low_next = 0
        self._high_start = self._high_end = len(members)
        self._high_level = highest + 1
        self._high_next = len(members) - 1

    @property
    def balanced(self) -> bool:
        """Whether the levels of the two ranges differ by one at most."""
        return self._high_level - self._low_level <= 1

    def next_taker(self) -> int:
        """The next member to receive a partition."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            self._extend_low()
            self._low_next = 0
        member = self._members[self._low_next]
        self._low_next += 1
        return member

    def next_takers(self, count: int) -> list[int]:
        """The next `count` members to receive a partition, in order; their sizes are already increased."""
        takers: list[int] = []
        members, sizes = self._members, self._sizes
        while len(takers) < count:
            self._low_level += 1
            self._extend_low()
            left = count - len(takers)
            # Full turns until the next member joins.
            turns = -(-left // self._low_end)
            if self._low_end < len(members):
                turns = min(turns, sizes[members[self._low_end]] - self._low_level)
            dealt = min(left, turns * self._low_end)
            takers += islice(cycle(members[: self._low_end]), dealt)
            full, more = divmod(dealt, self._low_end)
            for position in range(self._low_end):
                sizes[members[position]] += full + (position < more)
            self._low_level += turns - 1
        return takers

    def next_giver(self) -> int | None:
        """The next member to give a partition; None when no member is left."""
        if self._high_next < self._high_start:
            if 0 < self._high_start >= self._high_end:
                # All of the range was excluded: start again from the member before it.
                self._high_level = self._sizes[self._members[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start and self._sizes[self._members[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        member = self._members[self._high_next]
        self._high_next -= 1
        return member

    def exclude_last_giver(self) -> None:
        """Exclude the last result of `next_giver` from its range: it has nothing to give."""
        members, gave, last = self._members, self._high_next + 1, self._high_end - 1
        members[gave], members[last] = members[last], members[gave]
        self._high_end = last

    def _extend_low(self) -> None:
        while self._low_end < len(self._members) and self._sizes[self._members[self._low_end]] == self._low_level:
            self._low_end += 1

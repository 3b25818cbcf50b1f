"""Delivery states of records as ranges of offsets, and how a share coordinator lays new ones over those it has.

Source of the rule: `PersisterStateBatchCombiner` of Kafka 4.3.1. What is below the start offset goes. Where two ranges
cover an offset, the one with more deliveries holds, and with as many deliveries the one with the higher state. Ranges
that touch and say the same become one. (The class leaves some of these apart, depending on the order in which it meets
them; no offset has another state by that.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

AVAILABLE: Final = 0
"""May be delivered. In a state that is kept: was delivered before, and came back."""

ACKNOWLEDGED: Final = 2
ARCHIVED: Final = 4
"""Will not be delivered again: rejected, delivered as often as the group allows, or not a record at all. `RecordState`
of Kafka 4.3.1, which never keeps 1 (acquired): that is in the memory of the partition's leader."""

DONE: Final = frozenset({ACKNOWLEDGED, ARCHIVED})
"""States that a record does not leave."""


class StateBatch(NamedTuple):
    """Offsets with the same delivery state.

    Attributes:
        first: First offset.
        last: Last offset, included.
        deliveries: How often they were delivered.
        state: `AVAILABLE`, `ACKNOWLEDGED` or `ARCHIVED`.
    """

    first: int
    last: int
    deliveries: int
    state: int

    @property
    def records(self) -> int:
        """Number of offsets."""
        return self.last - self.first + 1

    def between(self, first: int, last: int) -> StateBatch:
        """The part from an offset to another one, which must not be empty."""
        return StateBatch(max(self.first, first), min(self.last, last), self.deliveries, self.state)


def combine(so_far: list[StateBatch], new: Iterable[StateBatch], start: int) -> list[StateBatch]:
    """Lay new ranges over those so far.

    Args:
        so_far: Ascending, without overlaps; not modified.
        new: In any order.
        start: The start offset; -1 where there is none.

    Returns:
        Ascending, without overlaps; none of them touches one that says the same.
    """
    kept = [batch.between(start, batch.last) for batch in so_far if batch.last >= start]
    for batch in new:
        if batch.last >= start:
            _lay(kept, batch.between(start, batch.last))
    return kept


def _lay(kept: list[StateBatch], new: StateBatch) -> None:
    low = bisect_left(kept, new.first, key=lambda batch: batch.last)
    high = low
    parts: list[StateBatch] = []
    at = new.first
    while high < len(kept) and kept[high].first <= new.last:
        old = kept[high]
        if old.first < new.first:
            parts.append(old.between(old.first, new.first - 1))
        if at < old.first:
            parts.append(new.between(at, old.first - 1))
        stronger = old if old[2:] > new[2:] else new
        shared = old.between(new.first, new.last)
        parts.append(stronger.between(shared.first, shared.last))
        at = shared.last + 1
        if old.last > new.last:
            parts.append(old.between(new.last + 1, old.last))
        high += 1
    if at <= new.last:
        parts.append(new.between(at, new.last))
    # With their neighbours, which may touch them.
    before, behind = max(0, low - 1), high + 1
    kept[before:behind] = _joined([*kept[before:low], *parts, *kept[high:behind]])


def _joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    joined: list[StateBatch] = []
    for batch in batches:
        if joined and joined[-1].last + 1 == batch.first and joined[-1][2:] == batch[2:]:
            joined[-1] = StateBatch(joined[-1].first, batch.last, batch.deliveries, batch.state)
        else:
            joined.append(batch)
    return joined

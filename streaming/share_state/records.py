"""Records of `__share_group_state`: what a share coordinator keeps of each partition of each share group (KIP-932).

A snapshot has the whole state of one partition of a group, and an update what has changed since. Laid one over the
other they are what the group has consumed: a snapshot replaces, an update is laid over what is there, a tombstone ends
it (`ShareCoordinatorShard` of Kafka 4.3.1). Records whose snapshots brokers have pruned begin with an update, which
then stands for itself. Layouts are in `schemas/`.

Delivery states are kept as ranges of offsets. Source of the rule by which new ones are laid over those that are there:
`PersisterStateBatchCombiner` of Kafka 4.3.1. What is below the start offset goes. Where two ranges cover an offset, the
one with more deliveries holds, and with as many deliveries the one with the higher state. Ranges that touch and say the
same become one. (The class leaves some of these apart, depending on the order in which it meets them; no offset has
another state by that.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from streaming.offsets_log import Rejected, UnknownKey, UnknownVersion, decode_record, printed, record_schemas

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


TOPIC: Final = "__share_group_state"
"""The topic; no setting of a broker renames it."""

STATE_TYPES: Final = record_schemas("streaming.share_state.schemas")
"""Schema by key type."""

_SNAPSHOT: Final = "ShareSnapshot"


class ShareKey(NamedTuple):
    """A partition of a share group.

    Attributes:
        group: Group id.
        topic_id: Kafka's printed topic id.
        partition: Its number.
    """

    group: str
    topic_id: str
    partition: int


@dataclass(frozen=True, slots=True)
class StateRecord:
    """One record.

    Attributes:
        key: What it is about.
        snapshot: It has the whole state; False for a change.
        start: Start offset; -1 while there is none, and in a change that leaves it as it is.
        done: Records from the start offset on that are acknowledged or archived (`deliveryCompleteCount`); -1 before
            Kafka 4.2, and while there is no start offset.
        batches: Delivery states; of a change only those that have changed.
        ended: A tombstone: the state is gone.
    """

    key: ShareKey
    snapshot: bool
    start: int = -1
    done: int = -1
    batches: tuple[StateBatch, ...] = ()
    ended: bool = False


def decode_state(key: bytes | None, value: bytes | None) -> StateRecord | UnknownKey | UnknownVersion | Rejected:
    """Decode one record. Never raises.

    Stricter than Java in one thing: offsets that no coordinator writes, below -1 or in the wrong order, are refused.
    """
    record = decode_record(STATE_TYPES, key, value)
    if not isinstance(record, tuple):
        return record
    of = record.key
    where = ShareKey(of.groupId, printed(of.topicId) or "", of.partition)
    snapshot = record.name == _SNAPSHOT
    if record.value is None:
        # A coordinator writes tombstones of snapshots only; it would fail at any other.
        return StateRecord(where, snapshot, ended=True)
    batches = tuple(
        [
            StateBatch(told.firstOffset, told.lastOffset, told.deliveryCount, told.deliveryState)
            for told in record.value.stateBatches
        ]
    )
    wrong = next((b for b in batches if b.first < 0 or b.last < b.first), None)
    if wrong is not None:
        return Rejected(f"value: there is no range of offsets from {wrong.first} to {wrong.last}")
    return StateRecord(where, snapshot, record.value.startOffset, record.value.deliveryCompleteCount, batches)


@dataclass(slots=True)
class PartitionDeliveries:
    """One partition of a share group.

    Attributes:
        start: Start offset; -1 while there is none: nothing was ever delivered.
        done: Records from there on that are acknowledged or archived, as the coordinator counts them.
        batches: Delivery states from there on; records without one were not delivered, or have not come back.
        archived: Records archived since counting began, by the number of their deliveries.
    """

    start: int = -1
    done: int = 0
    batches: list[StateBatch] = field(default_factory=list)
    archived: Counter[int] = field(default_factory=Counter)

    @property
    def first(self) -> int:
        """The first offset from the start on that is not done; -1 without a start."""
        first = self.start
        for batch in self.batches:
            if batch.first > first or batch.state not in DONE:
                break
            first = batch.last + 1
        return first

    def records(self, state: int) -> int:
        """Number of records in a state."""
        return sum(batch.records for batch in self.batches if batch.state == state)

    @property
    def deliveries(self) -> int:
        """How often the record that came back most often has been delivered; 0 where none came back."""
        return max((batch.deliveries for batch in self.batches if batch.state == AVAILABLE), default=0)


class ShareStates:
    """All share groups of a cluster, in the order of their records. Not for several threads."""

    def __init__(self) -> None:
        """Know nothing."""
        self._groups: dict[str, dict[tuple[str, int], PartitionDeliveries]] = {}

    def of(self, group: str) -> Mapping[tuple[str, int], PartitionDeliveries]:
        """A group's partitions by topic id and number; empty for a group without state."""
        return self._groups.get(group, {})

    def apply(self, record: StateRecord, *, counts: bool) -> None:
        """Apply the next record of a partition of the topic.

        Args:
            record: The record.
            counts: Records that it archives are counted.
        """
        group, topic_id, number = record.key
        partitions = self._groups.setdefault(group, {})
        if record.ended:
            partitions.pop((topic_id, number), None)
            if not partitions:
                del self._groups[group]
            return
        known = partitions.setdefault((topic_id, number), PartitionDeliveries())
        before = known.batches
        start = record.start
        if not record.snapshot:
            start = known.start if start < 0 else start
        if counts:
            known.archived.update(_newly_archived(before, record.batches, known.start))
        known.batches = combine([] if record.snapshot else before, record.batches, start)
        known.start = start
        known.done = record.done
        if known.done < 0:
            known.done = known.records(ACKNOWLEDGED) + known.records(ARCHIVED)


def _newly_archived(before: list[StateBatch], new: tuple[StateBatch, ...], start: int) -> dict[int, int]:
    """Records that become archived, by the number of their deliveries.

    Args:
        before: The states so far.
        new: Those of the record.
        start: The start offset so far: what is below was done before.
    """
    found: dict[int, int] = {}
    for batch in new:
        if batch.state == ARCHIVED and batch.last >= start:
            fresh = batch.between(start, batch.last)
            there = sum(
                old.between(fresh.first, fresh.last).records
                for old in before
                if old.state in DONE and old.first <= fresh.last and fresh.first <= old.last
            )
            if fresh.records > there:
                found[batch.deliveries] = found.get(batch.deliveries, 0) + fresh.records - there
    return found

"""Records of `__share_group_state`: what a share coordinator keeps of each partition of each share group (KIP-932).

A snapshot has the whole state of one partition of a group, and an update what has changed since: a tombstone of a
snapshot ends it. Layouts are in `schemas/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from streaming.offsets_log import RecordDecoder, Rejected, UnknownKey, UnknownVersion, printed
from streaming.share_state.batches import StateBatch

TOPIC: Final = "__share_group_state"
"""The topic; no setting of a broker renames it."""

DECODER: Final = RecordDecoder("streaming.share_state.schemas")

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
    record = DECODER.decode(key, value)
    if not isinstance(record, tuple):
        return record
    of = record.key
    where = ShareKey(of.groupId, printed(of.topicId) or "", of.partition)
    snapshot = record.name == _SNAPSHOT
    if record.value is None:
        # A coordinator writes tombstones of snapshots only; it would fail at any other.
        return StateRecord(where, snapshot, ended=True)
    batches = tuple(map(_batch, record.value.stateBatches))
    wrong = next((b for b in batches if b.first < 0 or b.last < b.first), None)
    if wrong is not None:
        return Rejected(f"value: there is no range of offsets from {wrong.first} to {wrong.last}")
    return StateRecord(where, snapshot, record.value.startOffset, record.value.deliveryCompleteCount, batches)


def _batch(told: Any) -> StateBatch:
    return StateBatch(told.firstOffset, told.lastOffset, told.deliveryCount, told.deliveryState)

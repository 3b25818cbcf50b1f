"""The core's inputs: the events of one group, in the group's own order, and the keys under which they come.

The codec writes those from the log (`CommitWindow`, `MembershipRecord`, `MembershipTombstone`, and those of `modern.py`
for modern groups), the probe's rounds bring the `GroupObservation`. Times are milliseconds since the epoch, UTC, from
the records themselves; offsets are log offsets unless a name says otherwise. Everything is plain and packable (msgpack,
fields in order), because Spark passes it as one payload column and golden files contain it: fields are only ever
appended, with defaults.

Keys of the stateful operator are groups, and a few reserved keys. Any string is a legal group id, so a reserved key
could look like one: every key has a letter as prefix.
"""

from __future__ import annotations

import msgspec

from streaming.records.log import CommitWindow, Compacted, MembershipRecord, MembershipTombstone
from streaming.records.modern import ModernInput
from streaming.records.rounds import GroupObservation

__all__ = [
    "ROUNDS_KEY",
    "GroupInput",
    "decode_inputs",
    "encode_inputs",
    "group_key",
    "group_of",
    "in_order",
    "partition_key",
]

ROUNDS_KEY = "r:"
"""Key of the closed rounds."""

_GROUP = "g:"
_PARTITION = "p:"


def group_key(group: str) -> str:
    """Key of a group."""
    return _GROUP + group


def partition_key(topic: str, partition: int) -> str:
    """Key of rows that belong to a partition and not to a group (quarantine, gaps)."""
    return f"{_PARTITION}{topic}/{partition}"


def group_of(key: str) -> str | None:
    """Group id of a group's key; None for a reserved key."""
    return key[len(_GROUP) :] if key.startswith(_GROUP) else None


GroupInput = CommitWindow | MembershipRecord | MembershipTombstone | GroupObservation | Compacted | ModernInput

_ENCODER = msgspec.msgpack.Encoder()

_DECODER = msgspec.msgpack.Decoder(list[GroupInput])


def encode_inputs(inputs: list[GroupInput]) -> bytes:
    """Pack inputs of one group into one payload."""
    return _ENCODER.encode(inputs)


def decode_inputs(payload: bytes) -> list[GroupInput]:
    """Unpack what `encode_inputs` wrote.

    Raises:
        msgspec.DecodeError: The payload is not one of ours; the batch must fail, because guessing could corrupt state.
    """
    return _DECODER.decode(payload)


def in_order(inputs: list[GroupInput]) -> list[GroupInput]:
    """Order inputs of one group as they happened: by log offset, and observations after everything they include."""
    return sorted(inputs, key=_order)


def _order(item: GroupInput) -> tuple[int, int, int]:
    # An observation with position P comes after offset P-1 and before offset P; several at one position are ordered by
    # number.
    if isinstance(item, GroupObservation):
        return item.log_position, 0, item.round
    # A compacted range begins before the record at its first offset, which may exist.
    return item.position, 1, 0 if isinstance(item, Compacted) else 1

"""What the core takes in: the events of one group, in the group's own order.

The codec writes the log's share (`CommitWindow`, `MembershipRecord`, `MembershipTombstone`, and what
`modern_inputs.py` says of modern groups), the probe's rounds bring the `Tick`. Times are milliseconds since the
epoch, UTC, from the records themselves; offsets are log offsets unless a name says otherwise. Everything is plain
and packable (msgpack, fields in order), because it travels through Spark as one payload column and lies in golden
files: fields are only ever appended, with defaults.
"""

from __future__ import annotations

import msgspec

from streaming.records.commits import CommitWindow
from streaming.records.memberships import Compacted, MembershipRecord, MembershipTombstone
from streaming.records.modern import ModernInput
from streaming.records.observations import Tick

__all__ = [
    "GroupInput",
    "decode_inputs",
    "encode_inputs",
    "in_order",
]

GroupInput = CommitWindow | MembershipRecord | MembershipTombstone | Tick | Compacted | ModernInput

_ENCODER = msgspec.msgpack.Encoder()

_DECODER = msgspec.msgpack.Decoder(list[GroupInput])


def encode_inputs(inputs: list[GroupInput]) -> bytes:
    """Pack inputs of one group into one payload."""
    return _ENCODER.encode(inputs)


def decode_inputs(payload: bytes) -> list[GroupInput]:
    """Unpack what `encode_inputs` wrote.

    Raises:
        msgspec.DecodeError: The payload is not one of ours; a batch of such data must fail, not be guessed.
    """
    return _DECODER.decode(payload)


def in_order(inputs: list[GroupInput]) -> list[GroupInput]:
    """Order inputs of one group as they happened: log offsets, and ticks after all that they include."""
    return sorted(inputs, key=_order)


def _order(item: GroupInput) -> tuple[int, int, int]:
    # A tick with position P stands after offset P-1 and before offset P; ticks at one position by number.
    if isinstance(item, Tick):
        return item.log_position, 0, item.round
    # A stretch begins before the record at its first offset, which may be there.
    return item.position, 1, 0 if isinstance(item, Compacted) else 1

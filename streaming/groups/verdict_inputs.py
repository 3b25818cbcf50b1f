"""What a strategy was given for a verdict, and `drift.inputs`: the same as a line of `evenkeel assign`, compressed.

Whoever may join a group chooses how many members it has, their names, and what they claim. So the line is bounded,
and one that is certain to be too long is not even written.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from assignors import Group, Library, PartitionRacks
from assignors.brokers import ServerGroup
from assignors.jsonl import write_client_line, write_server_line

__all__ = ["LINE_MAX", "PACKED_MAX", "ClientInputs", "ServerInputs", "VerdictInputs", "pack_inputs", "unpack_inputs"]

LINE_MAX: Final = 1 << 20
"""Bytes of the line: 1 MiB. A group of 1,000 members and 10,000 partitions needs 0.4 MB where members say what they
own; writing much more would be felt beside the verdict."""

PACKED_MAX: Final = 64 << 10
"""Bytes of the compressed line: 64 KiB, as much as `quarantine` keeps of a record. The random part of member ids does
not compress: the group above needs 26 KB, and 52 KB where members say what they own."""

# What everyday groups need takes 10 us at any level. That of 1,000 members is a seventh smaller than at 1, for 2 ms
# more; 9 saves nothing.
_LEVEL = 6

# Bytes that are compressed before a look at what has come of them: what does not compress is given up early.
_STEP = 128 << 10


@dataclass(frozen=True, slots=True)
class ClientInputs:
    """What a leader's strategy was given.

    Attributes:
        strategy: Its name.
        group: Members and partition counts.
        library: The leader's library.
        partition_racks: Racks of the replicas; None when it was asked without.
    """

    strategy: str
    group: Group
    library: Library
    partition_racks: PartitionRacks | None = None


@dataclass(frozen=True, slots=True)
class ServerInputs:
    """What a broker's assignor was given.

    Attributes:
        strategy: Its name in `assignors.brokers`.
        group: Members, previous targets and topics.
        release: The broker's release.
    """

    strategy: str
    group: ServerGroup
    release: str


VerdictInputs = ClientInputs | ServerInputs


def pack_inputs(inputs: VerdictInputs) -> bytes | None:
    """The line of `evenkeel assign`, compressed (zlib); None when it is beyond `LINE_MAX` or `PACKED_MAX`."""
    if _is_too_long(inputs):
        return None
    line = msgspec.json.encode(_line(inputs))
    if len(line) > LINE_MAX:
        return None
    packer = zlib.compressobj(_LEVEL)
    packed = b""
    for start in range(0, len(line), _STEP):
        packed += packer.compress(line[start : start + _STEP])
        if len(packed) > PACKED_MAX:
            return None
    packed += packer.flush()
    return packed if len(packed) <= PACKED_MAX else None


def unpack_inputs(packed: bytes) -> bytes:
    """The line that `pack_inputs` has packed.

    Raises:
        ValueError: It is none, or longer than any that was packed.
    """
    unpacker = zlib.decompressobj()
    try:
        line = unpacker.decompress(packed, LINE_MAX + 1)
    except zlib.error as error:
        message = f"these bytes are no zlib stream ({error}): give the whole of drift.inputs"
        raise ValueError(message) from None
    if not unpacker.eof or len(line) > LINE_MAX:
        message = "this zlib stream is cut short, or too long: give the whole of drift.inputs"
        raise ValueError(message)
    return line


def _line(inputs: VerdictInputs) -> dict[str, Any]:
    if isinstance(inputs, ServerInputs):
        return write_server_line(inputs.strategy, inputs.group, inputs.release)
    return write_client_line(inputs.strategy, inputs.group, inputs.library, inputs.partition_racks)


def _is_too_long(inputs: VerdictInputs) -> bool:
    """Whether the line is certain to be longer than may be, by as many members as it takes to tell."""
    size = 0
    for least in _least_sizes(inputs):
        size += least
        if size > LINE_MAX:
            return True
    return False


def _least_sizes(inputs: VerdictInputs) -> Iterator[int]:
    """Bytes that parts of the line take at least."""
    for member in inputs.group.members:
        yield len(member.member_id) + sum(map(len, member.topics)) + 3 * len(member.topics)
    if isinstance(inputs, ServerInputs):
        for of_broker in inputs.group.members:
            yield sum(2 * len(partitions) for _, partitions in of_broker.target)
        return
    for of_client in inputs.group.members:
        yield 2 * len(of_client.user_data or b"")
        yield sum(len('["",0],') * len(partitions) for _, partitions in of_client.owned)
    for racks in (inputs.partition_racks or {}).values():
        yield len("[],") * len(racks)

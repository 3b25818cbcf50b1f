"""What a verdict used, as one compressed line of `evenkeel assign`: the column `drift.inputs`.

Anyone with the right to join a group chooses its number of members, their names and what they claim to own. So the line
has a limit.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec

from assignors import Assignment, Group, Library, PartitionRacks, same
from assignors.brokers import ServerGroup, assign_on_server
from assignors.jsonl import write_allocate_line, write_client_line, write_server_line, write_streams_line
from assignors.rocketmq import MessageQueue, Options
from assignors.streams import StreamsGroup, assign_tasks

LINE_MAX: Final = 1 << 20
"""Limit of the line, in bytes: 1 MiB. A group of 1,000 members and 10,000 partitions needs 0.4 MB if its members report
owned partitions. Writing much more would add noticeably to the time of the verdict."""

PACKED_MAX: Final = 64 << 10
"""Limit of the compressed line, in bytes: 64 KiB, as much as `quarantine` keeps of a record. The random part of member
ids does not compress: the group above needs 26 KB, or 52 KB if its members report owned partitions."""

# The line of an ordinary group takes 10 us at any level. For 1,000 members, level 6 is a seventh smaller than level 1
# and takes 2 ms more; level 9 saves nothing further.
_LEVEL = 6


@dataclass(frozen=True, slots=True)
class ClientInputs:
    """Inputs of a leader's strategy.

    Attributes:
        strategy: Its name.
        group: Members and partition counts.
        library: The leader's library.
        partition_racks: Racks of the replicas; None when it was tried without racks.
    """

    strategy: str
    group: Group
    library: Library
    partition_racks: PartitionRacks | None = None


@dataclass(frozen=True, slots=True)
class ServerInputs:
    """Inputs of a broker's assignor.

    Attributes:
        strategy: Its name in `assignors.brokers`.
        group: Members, previous targets and topics.
        release: The broker's release.
    """

    strategy: str
    group: ServerGroup
    release: str

    def gives(self, target: Assignment, _standby: Assignment) -> bool:
        """Whether the assignor gives this target; raises `AssignorError` as `assign_on_server`."""
        return same(assign_on_server(self.strategy, self.group, self.release), target)


@dataclass(frozen=True, slots=True)
class StreamsInputs:
    """Inputs of the task assignor of streams groups.

    Attributes:
        group: Members, previous tasks and topology.
        release: The broker's release.
    """

    group: StreamsGroup
    release: str
    strategy: ClassVar[str] = "sticky"

    def gives(self, active: Assignment, standby: Assignment) -> bool:
        """Whether the assignor gives these tasks; raises `AssignorError` as `assign_tasks`."""
        return assign_tasks(self.group, self.release).fits(active, standby)


@dataclass(frozen=True, slots=True)
class AllocateInputs:
    """Inputs of a RocketMQ client's strategy, for one topic.

    Attributes:
        strategy: Its `getName()`.
        queues: The topic's queues.
        clients: The group's clients, duplicates kept.
        options: The strategy's parameters.
    """

    strategy: str
    queues: tuple[MessageQueue, ...]
    clients: tuple[str, ...]
    options: Options


VerdictInputs = ClientInputs | ServerInputs | StreamsInputs | AllocateInputs


def pack_inputs(inputs: VerdictInputs) -> bytes | None:
    """The line of `evenkeel assign`, compressed (zlib); None when it is beyond `LINE_MAX` or `PACKED_MAX`."""
    return pack_line(_line(inputs))


def pack_line(question: Mapping[str, Any]) -> bytes | None:
    """A line of `evenkeel assign`, compressed; None when it is beyond `LINE_MAX` or `PACKED_MAX`."""
    line = msgspec.json.encode(question)
    if len(line) > LINE_MAX:
        return None
    packed = zlib.compress(line, _LEVEL)
    if len(packed) <= PACKED_MAX:
        return packed
    return None


def unpack_inputs(packed: bytes) -> bytes:
    """The line that `pack_inputs` compressed.

    Raises:
        ValueError: These bytes are not such a line, or the line is longer than `LINE_MAX`.
    """
    unpacker = zlib.decompressobj()
    try:
        line = unpacker.decompress(packed, LINE_MAX + 1)
    except zlib.error as error:
        message = f"these bytes are not a zlib stream ({error}): give the whole of drift.inputs"
        raise ValueError(message) from None
    if not unpacker.eof or len(line) > LINE_MAX:
        message = "this zlib stream is cut short, or too long: give the whole of drift.inputs"
        raise ValueError(message)
    return line


def _line(inputs: VerdictInputs) -> dict[str, Any]:
    if isinstance(inputs, AllocateInputs):
        return write_allocate_line(inputs.strategy, inputs.queues, inputs.clients, inputs.options)
    if isinstance(inputs, StreamsInputs):
        return write_streams_line(inputs.group, inputs.release)
    if isinstance(inputs, ServerInputs):
        return write_server_line(inputs.strategy, inputs.group, inputs.release)
    return write_client_line(inputs.strategy, inputs.group, inputs.library, inputs.partition_racks)

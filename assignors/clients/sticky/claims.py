"""What members claim to have had: the user data of the sticky strategies, and whose claims each era of Java believes.

`sticky`, version 1: previous_assignment[] {topic string, partitions[] int32}, generation int32; version 0 has no
generation. `cooperative-sticky` of Java: generation int32. Big endian, strings with an int16 length, arrays with an
int32 count; there is no version field. Java tries version 1, then 0, and otherwise ignores the data
(`StickyAssignor.deserializeTopicPartitionAssignment`). Every read returns the position of Java's buffer afterwards,
whether it succeeded or not: Java before 3.0 reads some buffers twice without rewinding them.

Up to 3.4.0 only the members of the highest generation count; from 3.4.1 on each partition's owner is found by
generations (KAFKA-14639). A partition that two members of one generation claim has no owner ("multi", from 2.8.1 on).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from assignors.assignment import PartitionId
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.context import spend
from assignors.model import Subscription, TopicPartitions


@dataclass(frozen=True, slots=True)
class MemberData:
    """A member's claims (`AbstractStickyAssignor.MemberData`).

    Attributes:
        partitions: Partitions by topic, in the order of the bytes; a topic may occur twice.
        generation: Generation; None when absent, which differs from -1.
    """

    partitions: TopicPartitions
    generation: int | None


NOTHING = MemberData((), None)
_UNREADABLE = MemberData((), -1)


class _Underflow(Exception):
    """Java's buffer has too few bytes left, or contains an impossible length."""


class _Buffer:
    """Java's `ByteBuffer` as its schema types read it: a failed read leaves the position where it failed."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def int32(self) -> int:
        return int(self._number(_INT32))

    def int16(self) -> int:
        return int(self._number(_INT16))

    def length(self, number: struct.Struct) -> int:
        length = self._number(number)
        if not 0 <= length <= len(self.data) - self.position:
            raise _Underflow
        return length

    def previous_assignment(self) -> TopicPartitions:
        return tuple(self._topic() for _ in range(self.length(_INT32)))

    def _topic(self) -> tuple[str, tuple[int, ...]]:
        length = self.length(_INT16)
        topic = self.data[self.position : self.position + length].decode("utf-8", "replace")
        self.position += length
        count = self.length(_INT32)
        left = (len(self.data) - self.position) // 4
        if count > left:
            self.position += 4 * left
            raise _Underflow
        partitions = struct.unpack_from(f">{count}i", self.data, self.position)
        self.position += 4 * count
        return topic, partitions

    def _number(self, number: struct.Struct) -> int:
        if len(self.data) - self.position < number.size:
            raise _Underflow
        value: int = number.unpack_from(self.data, self.position)[0]
        self.position += number.size
        return value


def said_in_subscription(member: Subscription) -> MemberData:
    """A member's claims by its subscription alone: for cooperative strategies of other libraries than Java's."""
    return MemberData(member.owned, -1 if member.generation is None else member.generation)


def read_sticky(data: bytes | None, position: int = 0) -> tuple[MemberData, int]:
    """Read the user data of `sticky` from a position on, as Java does; returns it and the buffer's final position.

    Null and empty user data mean no partitions and no generation; unreadable bytes mean no partitions and generation
    -1.
    """
    if data is None or position >= len(data):
        return NOTHING, position
    buffer = _Buffer(data, position)
    partitions: TopicPartitions | None = None
    try:
        partitions = buffer.previous_assignment()
        return MemberData(partitions, buffer.int32()), buffer.position
    except _Underflow:
        # Version 0 has no generation; bytes that fail before it are unreadable in both versions.
        return _UNREADABLE if partitions is None else MemberData(partitions, None), buffer.position


def read_generation(data: bytes | None, position: int = 0) -> tuple[int | None, int]:
    """Read the user data of Java's `cooperative-sticky`: the generation, None for null, -1 for unreadable."""
    if data is None:
        return None, position
    buffer = _Buffer(data, position)
    try:
        return buffer.int32(), buffer.position
    except _Underflow:
        return -1, buffer.position


def read_kafka_python(data: bytes | None) -> MemberData:
    """Read the user data of `sticky` like kafka-python from 3.0 on, which puts the version in front.

    Empty and unreadable bytes, including Java's, mean no partitions and generation -1.
    """
    buffer = _Buffer(data or b"", 0)
    try:
        version = buffer.int16()
        if version < 0:
            return _UNREADABLE
        partitions = buffer.previous_assignment()
        return MemberData(partitions, buffer.int32() if version else -1)
    except _Underflow:
        return _UNREADABLE


def write_sticky(partitions: TopicPartitions, generation: int | None) -> bytes:
    """Write the user data of `sticky`: version 1, or version 0 without a generation."""
    parts = [_INT32.pack(len(partitions))]
    for topic, numbers in partitions:
        name = topic.encode("utf-8")
        parts.append(_INT16.pack(len(name)) + name + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    if generation is not None:
        parts.append(_INT32.pack(generation))
    return b"".join(parts)


def write_kafka_python(partitions: TopicPartitions, generation: int) -> bytes:
    """Write the user data of `sticky` like kafka-python from 3.0 on: with the version, 1, in front."""
    return _INT16.pack(1) + write_sticky(partitions, generation)


def claimed_partitions(member: Subscription) -> TopicPartitions:
    """Partitions that a member of a sticky group claims to own, in its subscription or in its user data."""
    data = member.user_data
    return (*member.owned, *read_sticky(data)[0].partitions, *read_kafka_python(data).partitions)


DEFAULT_GENERATION = -1
_Compare = Callable[[int, int], int]
"""Compares the later claimant's generation with the earlier one's: above, below or equal to 0."""


@dataclass(slots=True)
class Claims:
    """Owners before the decision.

    Attributes:
        owned: Ids that each member owned, in the order of its claims.
        multi: Ids claimed by several members of one generation.
    """

    owned: list[Ids]
    multi: set[int] = field(default_factory=set)


def first_unlike(indexed: IndexedGroup) -> int | None:
    """Index of the first member whose subscription differs from those before it; None if there is none.

    Java compares all with the first nonempty one (`allSubscriptionsEqual`): empty ones before it do not matter, empty
    ones after it do.
    """
    reference: frozenset[str] = frozenset()
    last: tuple[str, ...] | None = None
    for position, topics in enumerate(indexed.listed):
        if not reference:
            reference = frozenset(topics)
        elif len(topics) != len(reference) or (topics is not last and not reference.issuperset(topics)):
            return position
        last = topics
    return None


def believe_highest_generation(
    indexed: IndexedGroup,
    data: Sequence[MemberData],
    *,
    remembered: int = DEFAULT_GENERATION,
    detect_multi: bool = True,
) -> Claims:
    """Claims of the members of the highest generation, in releases before 3.4.1.

    If no member has a generation, all members without one or with -1 count.

    Args:
        indexed: The group.
        data: Each member's claims.
        remembered: Highest generation of the leader's earlier decisions (from 3.0 on).
        detect_multi: Whether partitions claimed twice are taken from both (from 2.8.1 on).
    """
    highest = _highest(data, remembered)
    claims = Claims(
        indexed.ids_of_each(
            d.partitions if d.generation == highest or (d.generation is None and highest == DEFAULT_GENERATION) else ()
            for d in data
        )
    )
    if detect_multi:
        _resolve(claims, lambda *_: 0, forget_claimant=False)
    return claims


def believe_per_partition(
    indexed: IndexedGroup,
    data: Sequence[MemberData],
    subscription_generations: Sequence[int | None],
    *,
    forget_claimant: bool,
) -> Claims:
    """Claims partition by partition, from 3.4.1 on.

    A later claimant's generation is compared with that of the earlier claimant's *subscription*, which for `sticky` in
    old subscriptions is always -1.

    Args:
        indexed: The group.
        data: Each member's claims.
        subscription_generations: Generation field of each member's subscription.
        forget_claimant: The bug of 3.4.1 to 3.5.1: a claim that loses still counts as the last one.
    """
    generations = [DEFAULT_GENERATION if d.generation is None else d.generation for d in data]
    others = [DEFAULT_GENERATION if g is None else g for g in subscription_generations]
    claims = Claims(indexed.ids_of_each(d.partitions for d in data))
    _resolve(claims, lambda mine, other: generations[mine] - others[other], forget_claimant=forget_claimant)
    return claims


def previous_owners(indexed: IndexedGroup, data: Sequence[MemberData], remembered: int) -> dict[int, int]:
    """Owner of each partition in the last generation before the highest, if still claimed by a member (>= 3.0)."""
    highest = _highest(data, remembered)
    found: dict[int, tuple[int, int]] = {}
    for position, said in enumerate(data):
        generation = DEFAULT_GENERATION if said.generation is None else said.generation
        if generation < highest and said.partitions:
            for partition in indexed.ids_of(said.partitions).tolist():
                earlier = found.get(partition)
                if earlier is None or generation > earlier[1]:
                    found[partition] = position, generation
    return {partition: position for partition, (position, _) in found.items()}


def _highest(data: Sequence[MemberData], remembered: int) -> int:
    return max(remembered, max((d.generation for d in data if d.generation is not None), default=DEFAULT_GENERATION))


def _resolve(claims: Claims, compare: _Compare, *, forget_claimant: bool) -> None:
    """Settle partitions that are claimed more than once; the others do not change."""
    lengths = [ids.size for ids in claims.owned]
    everything = np.concatenate(claims.owned)
    times = np.bincount(everything, minlength=1)
    if times.max() <= 1:
        return
    kept = np.ones(everything.size, dtype=bool)
    contested = np.flatnonzero(times[everything] > 1)
    member_of = np.repeat(np.arange(len(lengths)), lengths)
    claimant: dict[int, int] = {}
    held: dict[int, dict[int, int]] = {}
    for position, member, partition in zip(
        contested.tolist(), member_of[contested].tolist(), everything[contested].tolist(), strict=True
    ):
        other = claimant.get(partition)
        if other is None:
            claimant[partition] = member
            held[partition] = {member: position}
            continue
        kept[position] = False
        holders = held[partition]
        order = compare(member, other)
        if order >= 0 or forget_claimant:
            claimant[partition] = member
        if order < 0:
            continue
        lost = holders.pop(other, None)
        if lost is not None:
            kept[lost] = False
        if order == 0:
            claims.multi.add(partition)
        elif other != member or lost is not None:
            # A member that claims a partition twice without holding it adds it and takes it from itself.
            kept[position] = True
            holders[member] = position
    stops = np.cumsum(lengths).tolist()
    claims.owned = [
        everything[stop - length : stop][kept[stop - length : stop]]
        for stop, length in zip(stops, lengths, strict=True)
    ]


def claims_by_generation(data: Sequence[MemberData], *, overwriting: int | None) -> dict[PartitionId, dict[int, int]]:
    """Claimants of each partition by generation, existing or not, in the order of the claims.

    Args:
        data: Each member's claims; no generation counts as -1.
        overwriting: The generation in which a later claim replaces an earlier one of the same generation; None for
            claims without a generation.
    """
    found: dict[PartitionId, dict[int, int]] = {}
    for member, said in enumerate(data):
        generation = DEFAULT_GENERATION if said.generation is None else said.generation
        for topic, numbers in said.partitions:
            spend(6 * len(numbers))
            for number in numbers:
                claims = found.setdefault((topic, number), {})
                if said.generation == overwriting or generation not in claims:
                    claims[generation] = member
    return found


def two_newest(
    claims: Mapping[PartitionId, Mapping[int, int]], order: Iterable[PartitionId]
) -> tuple[dict[PartitionId, int], dict[PartitionId, int]]:
    """Owner of each partition in the newest generation, and in the one before where there are two, in this order."""
    newest, before = {}, {}
    for partition in order:
        generations = sorted(claims[partition], reverse=True)
        newest[partition] = claims[partition][generations[0]]
        if len(generations) > 1:
            before[partition] = claims[partition][generations[1]]
    return newest, before


def without_others(
    indexed: IndexedGroup, lists: Iterable[Iterable[int]], claims: Sequence[TopicPartitions]
) -> tuple[list[list[PartitionId]], dict[PartitionId, int]]:
    """Hold back partitions that another member claims; of two claimants the last one counts.

    Args:
        indexed: The group.
        lists: Partitions of each member.
        claims: What each member claims.

    Returns:
        What each member gets now, and the claimants of the partitions that nobody was given.
    """
    owners = {
        (topic, number): member
        for member, claimed in enumerate(claims)
        for topic, numbers in claimed
        for number in numbers
    }
    given: list[list[PartitionId]] = []
    for member, ids in enumerate(lists):
        given.append([])
        for partition in ids:
            row, number = indexed.topic_and_number(partition)
            place = indexed.topics[row], number
            if owners.pop(place, member) == member:
                given[-1].append(place)
    return given, owners


_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")

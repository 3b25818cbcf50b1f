"""The input of a broker's assignor (KIP-848, KIP-932): the group's members and topics, and each previous target.

Topics have UUIDs, with the text form, hash code and order of `org.apache.kafka.common.Uuid`.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from assignors.exceptions import BadGroup
from assignors.hash_map import in_hash_map, in_hash_order
from assignors.model import require_counts, require_once, topics_listed

_LENGTH = 16
_SIGN = 1 << 63


class Uuid(NamedTuple):
    """The two halves of a UUID as Java's signed longs, so that it compares like `Uuid.compareTo`.

    Attributes:
        most: Most significant bits.
        least: Least significant bits.
        code: `hashCode()` as an unsigned 32-bit number.
        text: Unpadded URL-safe base64, as Kafka prints it.
    """

    most: int
    least: int
    code: int
    text: str


@lru_cache(maxsize=1 << 17)
def uuid_of(text: str) -> Uuid:
    """Parse Kafka's text form; padding is ignored, as in `Uuid.fromString`.

    Raises:
        BadGroup: The text is not a UUID.
    """
    stripped = text.rstrip("=")
    try:
        data = b64decode(stripped + "=" * (-len(stripped) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        data = b""
    if len(data) != _LENGTH:
        message = f"Topic id {text[:100]!r} is not a UUID: give 16 bytes in URL-safe base64, as Kafka prints them."
        raise BadGroup(message)
    most, least = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:], "big")
    mixed = most ^ least
    return Uuid(
        most - 2 * (most & _SIGN),
        least - 2 * (least & _SIGN),
        (mixed >> 32 ^ mixed) & 0xFFFFFFFF,
        urlsafe_b64encode(data).rstrip(b"=").decode("ascii"),
    )


def texts_of(uuids: Iterable[Uuid]) -> list[str]:
    """UUIDs as Kafka prints them."""
    return [uuid.text for uuid in uuids]


Target = tuple[tuple[str, Sequence[int]], ...]
"""Partitions by topic id, in the order of the record: ((topic id, (partition, ...)), ...)."""


@dataclass(frozen=True, slots=True)
class ServerTopic:
    """A topic of the broker's metadata.

    Attributes:
        topic_id: Uuid as Kafka prints it.
        partitions: Partition count.
        initialized: Partitions whose state the share group has initialized, which are those that its assignor of Kafka
            4.1 or newer may assign; None means all. The consumer protocol's assignors have no such set.
    """

    topic_id: str
    partitions: int
    initialized: tuple[int, ...] | None = None

    def assignable(self) -> Sequence[int]:
        """Partitions that the assignor of a share group may assign, ascending."""
        if self.initialized is None:
            return range(self.partitions)
        return sorted({number for number in self.initialized if 0 <= number < self.partitions})


@dataclass(frozen=True, slots=True)
class ServerMember:
    """A member as the coordinator knows it.

    Attributes:
        member_id: Member id.
        topics: Names of subscribed topics, in the order that the assignor sees; duplicates count once. The order
            matters only if two ids share a bucket. A coordinator has the order of a HashSet of names: apply
            `assignors.brokers.names_in_hash_order` to the record's.
        target: Previous target assignment, in record order (type 7).
        group_instance_id: `group.instance.id`; None for a dynamic member.
        rack: `client.rack`; no built-in assignor uses it.
    """

    member_id: str
    topics: tuple[str, ...]
    target: Target = ()
    group_instance_id: str | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """One group at the coordinator's decision.

    Attributes:
        members: Members in the order in which they were inserted into the coordinator's HashMap; it matters only if two
            of them share a bucket.
        topics: Topics that exist, by name. Other subscribed names are skipped, as the coordinator does (`TopicIds`),
            but they still make subscriptions different.
        counts: Partition counts by topic id.
        uuids: Topic ids by their text, including those of targets whose topics are gone.
        partitions: Partitions of all targets, one topic of a member after the other.
        lengths: Number of partitions of each of these topics.
        homogeneous: Whether every member subscribes to all subscribed names (`ModernGroup.subscriptionType`).
        least_work: Units of work that any assignor needs (`assignors.context`): it walks members, topics and targets.

    Raises:
        BadGroup: A member id occurs twice; a count is negative or not a whole number, or the counts together are above
            `MAX_PARTITIONS`; a topic id is not a UUID, or two topics have the same one; a target contains a topic
            twice, or a partition that is not an int32.
    """

    members: tuple[ServerMember, ...]
    topics: Mapping[str, ServerTopic]
    counts: dict[str, int] = field(init=False, repr=False, compare=False)
    uuids: dict[str, Uuid] = field(init=False, repr=False, compare=False)
    least_work: int = field(init=False, repr=False, compare=False)
    partitions: NDArray[np.int32] = field(init=False, repr=False, compare=False)
    lengths: NDArray[np.int32] = field(init=False, repr=False, compare=False)
    homogeneous: bool = field(init=False, repr=False, compare=False)
    _subscribed: dict[str, tuple[Uuid, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_once(member.member_id for member in self.members)
        require_counts({name: topic.partitions for name, topic in self.topics.items()})
        uuids = _Uuids()
        for member in self.members:
            if len({uuids[topic_id].text for topic_id, _ in member.target}) != len(member.target):
                message = f"A topic appears twice in the target of member {member.member_id!r}: the broker refuses it."
                raise BadGroup(message)
        targets = [partitions for member in self.members for _, partitions in member.target]
        partitions = _int32(list(chain.from_iterable(targets)))
        walked = partitions.size // 4
        walked += sum(2 + len(member.topics) // 4 + len(member.target) for member in self.members)
        ids = {name: uuids[topic.topic_id] for name, topic in self.topics.items()}
        counts = {ids[name].text: topic.partitions for name, topic in self.topics.items()}
        if len(counts) < len(ids):
            message = "Two topics have one topic id: each topic has its own."
            raise BadGroup(message)
        listed = topics_listed(self.members)
        lists = {id(names): names for names in listed}
        existing = {at: tuple(ids[name] for name in dict.fromkeys(of) if name in ids) for at, of in lists.items()}
        subscribed = {member.member_id: existing[id(names)] for member, names in zip(self.members, listed, strict=True)}
        object.__setattr__(self, "least_work", walked + sum(counts.values()) // 4)
        object.__setattr__(self, "partitions", partitions)
        object.__setattr__(self, "lengths", np.fromiter(map(len, targets), dtype=np.int32, count=len(targets)))
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "uuids", uuids)
        object.__setattr__(self, "homogeneous", len(set(map(frozenset, lists.values()))) <= 1)
        object.__setattr__(self, "_subscribed", subscribed)

    def in_map_order(self) -> list[ServerMember]:
        """Members as the coordinator's HashMap iterates them; raises CannotTell if we cannot follow that order."""
        by_id = {member.member_id: member for member in self.members}
        return [by_id[member_id] for member_id in in_hash_order(by_id)]

    def target_in_map_order(self, member: ServerMember) -> list[tuple[Uuid, int]]:
        """Topics of a member's target and their places in it, as its HashMap iterates them (`Assignment.fromRecord`).

        Raises:
            CannotTell: We cannot follow that order.
        """
        uuids = [self.uuids[topic_id] for topic_id, _ in member.target]
        order = in_hash_map([uuid.code for uuid in uuids]) if len(uuids) > 1 else range(len(uuids))
        return [(uuids[at], at) for at in order]

    def subscribed(self, member: ServerMember) -> tuple[Uuid, ...]:
        """Ids of a member's existing topics, in its order, once each."""
        return self._subscribed[member.member_id]


class _Uuids(dict[str, Uuid]):
    """UUIDs by text; each text is parsed once."""

    def __missing__(self, text: str) -> Uuid:
        uuid = self[text] = uuid_of(text)
        return uuid


def _int32(partitions: list[int]) -> NDArray[np.int32]:
    if set(map(type, partitions)) <= {int}:
        with suppress(OverflowError):
            return np.array(partitions, dtype=np.int32)
    message = "A partition of a previous target is not an int32 number, which no record can contain."
    raise BadGroup(message)

"""The groups whose assignments are timed; the Java programs in this folder build the same ones."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode

from assignors import Assignment, Group, Subscription
from assignors.brokers import ServerGroup, ServerMember, ServerTopic
from tests.benchmarks.assign_times import NEWCOMER, Size

__all__ = ["client_group", "server_group", "topic_id"]

_MASK = (1 << 64) - 1


def client_group(size: Size, before: Assignment | None = None) -> Group:
    """A group without earlier assignments; or one whose members own their assignment, plus a new member."""
    members = [_member(size, number, member_id, before) for number, member_id in enumerate(_member_ids(size))]
    if before is not None:
        members.append(_member(size, 0, NEWCOMER, before))
    return Group(tuple(members), {f"topic{topic}": size.partitions for topic in range(size.topics)})


def _member(size: Size, number: int, member_id: str, before: Assignment | None) -> Subscription:
    had = None if before is None else before.get(member_id)
    owned = () if had is None else tuple((topic, tuple(partitions)) for topic, partitions in sorted(had.items()))
    return Subscription(
        member_id,
        tuple(sorted(f"topic{topic}" for topic in size.bucket(number))),
        owned=owned,
        generation=None if had is None else 1,
        user_data=struct.pack(">i", -1 if had is None else 1),
    )


def server_group(size: Size, before: Assignment | None = None) -> ServerGroup:
    """A group without earlier targets; or one whose members have their assignment as target, plus a new member."""
    members = [_server_member(size, number, member_id, before) for number, member_id in enumerate(_member_ids(size))]
    if before is not None:
        members.append(_server_member(size, 0, NEWCOMER, before))
    return ServerGroup(
        tuple(members),
        {f"topic{topic}": ServerTopic(topic_id(topic), size.partitions) for topic in range(size.topics)},
    )


def _server_member(size: Size, number: int, member_id: str, before: Assignment | None) -> ServerMember:
    had = {} if before is None else before.get(member_id, {})
    target = tuple(
        (one, tuple(sorted(had[one])))
        for one in map(topic_id, range(size.topics))
        if one in had
    )  # fmt: skip
    return ServerMember(member_id, tuple(f"topic{topic}" for topic in size.bucket(number)), target=target)


def topic_id(topic: int) -> str:
    """Pseudo-random bits, the same here and in Java."""
    halves = (topic + 1) * 0x9E3779B97F4A7C15 & _MASK, (topic + 1) * 0xC2B2AE3D27D4EB4F & _MASK
    return urlsafe_b64encode(b"".join(half.to_bytes(8, "big") for half in halves)).rstrip(b"=").decode("ascii")


def _member_ids(size: Size) -> list[str]:
    """Ids of the members before the join, by number."""
    return [f"member{number}" for number in range(size.members)]

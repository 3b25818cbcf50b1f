"""Members as the leaders of the sticky strategies read them: with what they had, and since which generation."""

from __future__ import annotations

import struct
from dataclasses import replace

from assignors import (
    Subscription,
)
from assignors.clients.sticky.claims import write_sticky


def cooperative(member_id: str, *topics: str, owned: dict[str, tuple[int, ...]], generation: int = 1) -> Subscription:
    data = struct.pack(">i", generation)
    return Subscription(member_id, topics, owned=tuple(owned.items()), generation=generation, user_data=data)


def newcomer(member_id: str, *topics: str) -> Subscription:
    return Subscription(member_id, topics, user_data=struct.pack(">i", -1))


def claiming(member_id: str, topics: str, generation: int = 3, **held: tuple[int, ...]) -> Subscription:
    return Subscription(member_id, tuple(topics.split()), user_data=write_sticky(tuple(held.items()), generation))


def owning(member_id: str, topics: str, generation: int = 3, **owned: tuple[int, ...]) -> Subscription:
    return Subscription(member_id, tuple(topics.split()), owned=tuple(owned.items()), generation=generation)


def read_by_kafka_python(*members: Subscription) -> tuple[Subscription, ...]:
    return tuple([replace(member, user_data=b"\0\1" + (member.user_data or b"")) for member in members])

"""A member of a classic group, decoded as far as possible."""

from __future__ import annotations

import msgspec

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by topic, in the order of the record: ((topic, (partition, ...)), ...)."""


class Member(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One member of a group metadata record, decoded as far as possible.

    Attributes:
        member_id: Member id.
        group_instance_id: `group.instance.id`; None for a dynamic member.
        client_id: Client id.
        client_host: Host as the broker recorded it, for example "/127.0.0.1".
        rebalance_timeout: ms; -1 when the record version has none.
        session_timeout: ms.
        subscription_version: Version of the consumer protocol's subscription; None when not decoded.
        topics: Subscribed topics in record order; None when the subscription was not decoded.
        owned: Owned partitions of the subscription (v1+), in record order.
        generation: Generation of the subscription (v2+); None when absent or -1.
        rack: Rack of the subscription (v3+); None when absent. An empty text also means none.
        user_data: User data of the subscription; None when null (an empty value is b"").
        assigned: Assigned partitions in record order; None when the assignment was not decoded.
        undecodable: Why subscription or assignment could not be decoded; None when both were, or when the protocol type
            is not "consumer" (then neither is tried).
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription_version: int | None
    topics: tuple[str, ...] | None
    owned: TopicPartitions
    generation: int | None
    rack: str | None
    user_data: bytes | None
    assigned: TopicPartitions | None
    undecodable: str | None = None

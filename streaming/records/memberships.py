"""Group metadata records: the members of a classic group and their partitions."""

from __future__ import annotations

import msgspec

__all__ = ["Compacted", "Member", "MembershipRecord", "MembershipTombstone", "TopicPartitions"]

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


class MembershipRecord(msgspec.Struct, frozen=True, array_like=True, tag="m", forbid_unknown_fields=True):
    """A group metadata record (key type 2) with a value.

    Attributes:
        record: Log offset.
        record_time: Record timestamp, ms.
        protocol_type: "consumer", "connect", ...; "" for a group created by a join that wrote nothing else.
        generation: Generation id.
        protocol: Selected protocol (the strategy's name); None when the group is empty.
        leader: Member id of the leader; None when the group is empty.
        state_time: `currentStateTimestamp`, ms: when the join phase completed; -1 when not recorded.
        members: Members in record order, which affects a recomputation.
        value_version: Version of the value.
        log_partition: Partition of the offsets log.
    """

    record: int
    record_time: int
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_time: int
    members: tuple[Member, ...]
    value_version: int
    log_partition: int = -1

    @property
    def position(self) -> int:
        """Log offset by which this input is ordered."""
        return self.record


class MembershipTombstone(msgspec.Struct, frozen=True, array_like=True, tag="t"):
    """A tombstone of key type 2: the group was deleted, expired, or moved to another protocol."""

    record: int
    record_time: int

    @property
    def position(self) -> int:
        """Log offset by which this input is ordered."""
        return self.record


class Compacted(msgspec.Struct, frozen=True, array_like=True, tag="k"):
    """A log range that Kafka compacted: only each key's last record remains.

    The group's records below `first` are complete. From `until` on the newest record of each of its keys is known
    again. The states in between are unknown.

    Attributes:
        first: First log offset that is missing.
        until: Log offset after the last record of the group in the range.
    """

    first: int
    until: int

    @property
    def position(self) -> int:
        """Log offset by which this input is ordered."""
        return self.first

"""Members of classic groups, request by request: one per group, for as many groups as a test wants.

A broker holds such a member for its session timeout, half an hour at most, without a heartbeat. So a thousand of them
take no thread and no process.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka.protocol.consumer import JoinGroupRequest, OffsetCommitRequest, SyncGroupRequest

from streaming.offsets_log import partition_for
from streaming.probe.clients import Connections
from streaming.probe.deadline import Deadline
from tests.real_groups.followed import until

__all__ = ["RawMembers", "assignment_bytes", "subscription_bytes"]

_SESSION_MS: Final = 1_800_000
"""`group.max.session.timeout.ms` of a broker, by default."""

_OK, _MEMBER_ID_REQUIRED = 0, 79
_COORDINATOR_COMES: Final = {14, 15, 16}
"""Loading, not available, not this one."""


def subscription_bytes(topic: str, user_data: bytes = b"") -> bytes:
    """A consumer's subscription to one topic, version 0."""
    name = topic.encode()
    data = struct.pack(">i", len(user_data)) + user_data if user_data else b""
    return struct.pack(">hih", 0, 1, len(name)) + name + data


def assignment_bytes(topic: str, partitions: Sequence[int]) -> bytes:
    """A consumer's assignment of partitions of one topic, version 0."""
    name = topic.encode()
    owned = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return struct.pack(">hih", 0, 1, len(name)) + name + owned + struct.pack(">i", -1)


class RawMembers:
    """The only member of each of some groups, all subscribed to one topic, all with `range`."""

    def __init__(self, admin: Any, groups: Sequence[str], topic: str, partitions: int) -> None:
        """Prepare; nobody joins yet.

        Args:
            admin: An open `KafkaAdminClient`.
            groups: The groups.
            topic: What the members subscribe to.
            partitions: How many partitions the topic has.
        """
        self._admin = admin
        self._connections = Connections(admin)
        self._topic, self._partitions = topic, partitions
        self._members = dict.fromkeys(groups, "")
        self._generations: dict[str, int] = {}

    def coordinators(self) -> Mapping[str, int]:
        """Node ids by group, from the leaders of the offsets log."""
        [log] = self._admin.describe_topics(["__consumer_offsets"])
        leaders = {partition["partition_index"]: partition["leader_id"] for partition in log["partitions"]}
        return {group: leaders[partition_for(group, len(leaders))] for group in self._members}

    def join(self) -> None:
        """Let all join, and give each all partitions."""
        waiting = dict.fromkeys(self._members)

        def joined() -> bool:
            for group, answer in self._ask({group: self._join_request(group) for group in waiting}).items():
                assert answer.error_code in {_OK, _MEMBER_ID_REQUIRED, *_COORDINATOR_COMES}, answer
                self._members[group] = answer.member_id or self._members[group]
                if answer.error_code == _OK:
                    self._generations[group] = answer.generation_id
                    del waiting[group]
            return not waiting

        until(joined)
        for answer in self._ask({group: self._sync_request(group) for group in self._members}).values():
            assert answer.error_code == _OK, answer

    def commit(self, offset: int) -> None:
        """Let each commit this offset for all partitions."""
        waiting = dict.fromkeys(self._members)

        def committed() -> bool:
            for group, answer in self._ask({group: self._commit_request(group, offset) for group in waiting}).items():
                errors = {partition.error_code for topic in answer.topics for partition in topic.partitions}
                assert errors <= {_OK, *_COORDINATOR_COMES}, answer
                if errors == {_OK}:
                    del waiting[group]
            return not waiting

        until(committed)

    def _ask(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        nodes = self.coordinators()
        work = [(nodes[group], request) for group, request in requests.items()]
        return dict(zip(requests, self._connections.ask(work, Deadline.after(120)), strict=True))

    def _join_request(self, group: str) -> Any:
        metadata = subscription_bytes(self._topic)
        return JoinGroupRequest(
            group_id=group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=60_000,
            member_id=self._members[group],
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)],
            reason=None,
        )

    def _sync_request(self, group: str) -> Any:
        member = self._members[group]
        bytes_ = assignment_bytes(self._topic, range(self._partitions))
        return SyncGroupRequest(
            group_id=group,
            generation_id=self._generations[group],
            member_id=member,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=bytes_)],
        )

    def _commit_request(self, group: str, offset: int) -> Any:
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = topic.OffsetCommitRequestPartition
        offsets = [
            partition(partition_index=n, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")
            for n in range(self._partitions)
        ]
        return OffsetCommitRequest(
            max_version=8,  # (from 10 on topics have ids)
            group_id=group,
            generation_id_or_member_epoch=self._generations[group],
            member_id=self._members[group],
            group_instance_id=None,
            topics=[topic(name=self._topic, partitions=offsets)],
        )

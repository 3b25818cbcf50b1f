"""Requests to coordinators about groups: ListGroups, OffsetFetch, and what describes a group of each type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from streaming.offsets_log import printed
from streaming.probe.clients import Connections, chunks_by_node
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.look import ListedGroup
from streaming.probe.kafka.messages import DescribeShareGroupOffsetsRequest
from streaming.probe.kafka.requests.topics import GROUP_FORBIDDEN, OK, Refused, demand, refusal_of_group
from streaming.records import START_NOT_TOLD

GROUPS_PER_REQUEST = 100
"""An answer holds the members' subscriptions and assignments: some megabytes for 100 groups of 50 members.

Fewer would cost round trips (each takes a millisecond or more), many more could exceed the 100 MB that a client reads.
"""

_SMALLER: Final = 4
"""So 100 groups are 25, then 6, then one by one."""

# A described group, in the class that kafka-python builds from the message's schema.
DescribedGroup = Any


CommittedOffsets: TypeAlias = Mapping[tuple[str, int], int]
"""A group's committed offsets, by topic and partition."""

_SHARE_OFFSETS_VERSION: Final = 1
"""Since 4.2, where share groups left preview; 4.1 told no lag, and had another way to ask for all topics."""


class ShareOffset(NamedTuple):
    """One partition of a share group, as its coordinator tells it.

    Attributes:
        topic: Topic.
        topic_id: Kafka's printed topic id; None when unknown.
        partition: Partition.
        start: Start offset; -1 while there is none, `START_NOT_TOLD` where the coordinator could not tell it.
        lag: Records from there to the end that are not done; -1 while there is no start offset.
    """

    topic: str
    topic_id: str | None
    partition: int
    start: int
    lag: int


class GroupRequests(Connections):
    """Asks coordinators for groups."""

    def list_groups(self, brokers: Iterable[int], deadline: Deadline) -> list[ListedGroup]:
        """Ask brokers for the groups that they coordinate; a group that two of them list appears twice.

        Raises:
            RoundAbandonedError: A broker did not answer, or is still loading groups, so that some would be missing.
        """
        nodes = list(brokers)
        answers = self.ask([(node, ListGroupsRequest()) for node in nodes], deadline)
        groups: list[ListedGroup] = []
        for node, answer in zip(nodes, answers, strict=True):
            demand(answer.error_code, f"broker {node} could not list its groups")
            version = answer.API_VERSION
            groups.extend(
                ListedGroup(
                    group.group_id,
                    node,
                    group.group_state if version >= 4 else None,
                    group.protocol_type,
                    group.group_type.lower() if version >= 5 else None,
                )
                for group in answer.groups
            )
        return groups

    def describe(
        self, request: Any, groups: Mapping[str, int], deadline: Deadline
    ) -> dict[str, DescribedGroup | Refused]:
        """Ask coordinators for groups.

        Args:
            request: Class of the request: `DescribeGroupsRequest` for the classic protocol, or one of `messages` for a
                type that the broker assigns (KIP-848, KIP-932, KIP-1071).
            groups: Coordinator (node id) per group.
            deadline: When the round has to be done.

        Returns:
            Kafka's `DescribedGroup` per group, or why there is none; `Refused.FORBIDDEN` also for a group with a topic
            that we may not describe (Kafka 4), `Refused.UNKNOWN` also for a group of another type, or where brokers do
            not know the request, and `Refused.FAILED` for one by which the coordinator fails.

        Raises:
            RoundAbandonedError: A coordinator did not answer in time, or has moved.
        """
        if groups and not self.knows(request):
            return dict.fromkeys(groups, Refused.UNKNOWN)
        field = "groups" if request is DescribeGroupsRequest else "group_ids"
        found: dict[str, DescribedGroup | Refused] = {}
        asked, size = groups, GROUPS_PER_REQUEST
        while asked:
            chunks = list(chunks_by_node(asked, size))
            work = [(node, request(**{field: chunk}, include_authorized_operations=False)) for node, chunk in chunks]
            for (_, chunk), answer in zip(chunks, self.ask(work, deadline, needs_all=False), strict=True):
                found |= dict.fromkeys(chunk, Refused.FAILED)
                for group in answer.groups if answer is not None else ():
                    found[group.group_id] = refusal_of_group(group, group.group_id) or group
            # A group whose description is an error for its coordinator (`StreamsGroup.asDescribedGroup`) costs all
            # groups of its log partition their answer: asked in smaller parts, the others have one.
            size //= _SMALLER
            asked = {name: node for name, node in asked.items() if size and found[name] is Refused.FAILED}
        return found

    def forbidden_groups(self, groups: Sequence[str], broker: int, deadline: Deadline) -> list[str]:
        """Which of these groups we may not describe; any broker can answer, whether or not the groups exist.

        Raises:
            RoundAbandonedError: The broker did not answer.
        """
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)
        [answer] = self.ask([(broker, request)], deadline)
        return [group.group_id for group in answer.groups if group.error_code == GROUP_FORBIDDEN]

    def coordinators(self, groups: Sequence[str], deadline: Deadline) -> dict[str, int | Refused]:
        """Ask for the coordinators (node ids) of groups; any broker answers.

        Raises:
            RoundAbandonedError: The broker did not answer, or a coordinator is moving.
        """
        if self.version(FindCoordinatorRequest) < 4:
            singly = [(None, FindCoordinatorRequest(key=group, key_type=0, max_version=3)) for group in groups]
            answers = list(zip(groups, self.ask(singly, deadline), strict=True))
        else:
            work = [
                (None, FindCoordinatorRequest(coordinator_keys=chunk, key_type=0, min_version=4))
                for _, chunk in chunks_by_node(dict.fromkeys(groups), GROUPS_PER_REQUEST)
            ]
            told = self.ask(work, deadline)
            answers = [(one.key, one) for answer in told for one in answer.coordinators]
        return {group: refusal_of_group(answer, group) or answer.node_id for group, answer in answers}

    def committed(self, groups: Mapping[str, int], deadline: Deadline) -> dict[str, CommittedOffsets | Refused]:
        """Ask coordinators for groups' committed offsets.

        Args:
            groups: Coordinator (node id) per group.
            deadline: When the round has to be done.

        Raises:
            RoundAbandonedError: A coordinator did not answer or has moved.
        """
        if self.version(OffsetFetchRequest) < 8:
            singly = [
                (node, OffsetFetchRequest(group_id=group, topics=None, min_version=2, max_version=7))
                for group, node in groups.items()
            ]
            answers = list(zip(groups, self.ask(singly, deadline), strict=True))
        else:
            one = OffsetFetchRequest.OffsetFetchRequestGroup
            work = [
                # From v10 on topics have ids only.
                (
                    node,
                    OffsetFetchRequest(
                        groups=[one(group_id=group, topics=None) for group in chunk], min_version=8, max_version=9
                    ),
                )
                for node, chunk in chunks_by_node(groups, GROUPS_PER_REQUEST)
            ]
            told = self.ask(work, deadline)
            answers = [(group.group_id, group) for answer in told for group in answer.groups]
        places: dict[tuple[str, int], tuple[str, int]] = {}
        found: dict[str, CommittedOffsets | Refused] = {}
        for group, answer in answers:
            refused = refusal_of_group(answer, group)
            found[group] = _committed(answer, places) if refused is None else refused
        return found

    def share_offsets(self, groups: Mapping[str, int], deadline: Deadline) -> dict[str, tuple[ShareOffset, ...]]:
        """Ask coordinators for the start offsets and lag of share groups (KIP-932, KIP-1226).

        Args:
            groups: Coordinator (node id) per group.
            deadline: When the round has to be done.

        Returns:
            Per group its partitions. A group of which it tells nothing is missing, and
            all are where brokers do not know the request.

        Raises:
            RoundAbandonedError: A coordinator did not answer.
        """
        request = DescribeShareGroupOffsetsRequest
        knows = bool(groups) and self.knows(request)
        if not knows or self.version(request) < _SHARE_OFFSETS_VERSION:
            return {}
        one = request.DescribeShareGroupOffsetsRequestGroup
        work = [
            (node, request(groups=[one(group_id=group, topics=None) for group in chunk]))
            for node, chunk in chunks_by_node(groups, GROUPS_PER_REQUEST)
        ]
        return {
            group.group_id: _share_offsets(group)
            for answer in self.ask(work, deadline)
            for group in answer.groups
            if group.error_code == OK
        }


def _share_offsets(group: Any) -> tuple[ShareOffset, ...]:
    return tuple(
        ShareOffset(
            topic.topic_name,
            printed(topic.topic_id.bytes) if topic.topic_id else None,
            partition.partition_index,
            partition.start_offset if partition.error_code == OK else START_NOT_TOLD,
            partition.lag,
        )
        for topic in group.topics
        for partition in topic.partitions
    )


def _committed(group: Any, places: dict[tuple[str, int], tuple[str, int]]) -> CommittedOffsets:
    """A group's offsets; `places` lets groups share their keys, which would take more memory than all the offsets."""
    return {
        places.setdefault(place := (topic.name, partition.partition_index), place): partition.committed_offset
        for topic in group.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }

"""Writes a group as a line of `evenkeel assign`; `assign_line` reads the same group from it.

Fields with default values are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assignors.brokers import ServerGroup, ServerMember
from assignors.jsonl.rocketmq import PREFIX, written_queues
from assignors.model import Group, Subscription
from assignors.rocketmq import MessageQueue, Options
from assignors.strategy import CUSTOM, Library, PartitionRacks


def write_client_line(
    strategy: str, group: Group, library: Library, partition_racks: PartitionRacks | None = None
) -> dict[str, Any]:
    """The line of a group with a client-side strategy.

    Args:
        strategy: Name of the strategy.
        group: Members and partition counts.
        library: The leader's library. A user's own strategy is found by its name, so its line has no library.
        partition_racks: Racks of the replicas; None when unknown.
    """
    line: dict[str, Any] = {"strategy": strategy}
    if library.name != CUSTOM:
        line["library"] = str(library)
    line["partitions_per_topic"] = dict(group.partitions_per_topic)
    line["members"] = {member.member_id: _client_member(member) for member in group.members}
    if partition_racks is not None:
        line["partition_racks"] = {topic: [list(of) for of in racks] for topic, racks in partition_racks.items()}
    if group.remembered_generation >= 0:
        line["remembered_generation"] = group.remembered_generation
    if group.other_topics_known:
        line["other_topics_known"] = True
    if group.leader is not None:
        line["leader"] = group.leader
    return line


def write_server_line(strategy: str, group: ServerGroup, release: str) -> dict[str, Any]:
    """The line of a group with a broker-side assignor.

    Args:
        strategy: "server-uniform" or "server-range".
        group: Members with their previous targets, and topics.
        release: The broker's release, such as "4.0.1".
    """
    return {
        "strategy": strategy,
        "library": release,
        "topics": {
            name: {"id": topic.topic_id, "partitions": topic.partitions} for name, topic in group.topics.items()
        },
        "members": {member.member_id: _server_member(member) for member in group.members},
    }


def write_allocate_line(
    strategy: str, queues: Iterable[MessageQueue], clients: Iterable[str], options: Options
) -> dict[str, Any]:
    """The line of one view of a RocketMQ group and a topic.

    Args:
        strategy: Its `getName()`.
        queues: All queues of the topic.
        clients: All clients of the group, duplicates kept.
        options: Options of the strategy.
    """
    line: dict[str, Any] = {
        "strategy": f"{PREFIX}{strategy}",
        "queues": written_queues(tuple(queues)),
        "clients": list(clients),
    }
    chosen: dict[str, Any] = {}
    if "CONSISTENT_HASH" in strategy:
        chosen["virtual_node_cnt"] = options.virtual_node_cnt
    if "CONFIG" in strategy:
        chosen["message_queue_list"] = written_queues(options.message_queue_list)
    if options.consumeridcs is not None:
        chosen["consumeridcs"] = sorted(options.consumeridcs)
    if options.room_separator is not None:
        chosen["room_separator"] = options.room_separator
    if chosen:
        line["options"] = chosen
    return line


def _client_member(member: Subscription) -> dict[str, Any]:
    written: dict[str, Any] = {"topics": member.topics}
    if member.owned:
        written["owned"] = [(topic, partition) for topic, partitions in member.owned for partition in partitions]
    if member.generation is not None:
        written["generation"] = member.generation
    if member.user_data is not None:
        written["user_data"] = member.user_data.hex()
    return written | _instance_and_rack(member)


def _server_member(member: ServerMember) -> dict[str, Any]:
    written: dict[str, Any] = {"topics": member.topics}
    if member.target:
        written["target"] = [(topic_id, list(partitions)) for topic_id, partitions in member.target]
    return written | _instance_and_rack(member)


def _instance_and_rack(member: Subscription | ServerMember) -> dict[str, Any]:
    written = {}
    if member.group_instance_id is not None:
        written["group_instance_id"] = member.group_instance_id
    if member.rack is not None:
        written["rack"] = member.rack
    return written

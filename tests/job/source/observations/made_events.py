"""Events of groups and their topics in round 7, on a log of two partitions."""

from __future__ import annotations

from streaming.events import GroupEvent, GroupGone, TopicEvent
from streaming.offsets_log import partition_for

LOG = (100, 200)


def group(name: str, topics: int, number: int = 7, **changes: object) -> GroupEvent:
    partition = partition_for(name, 2)
    given: dict[str, object] = {
        "v": 1,
        "cluster": "test",
        "round": number,
        "time": 1_000,
        "group": name,
        "log_partition": partition,
        "log_position": LOG[partition],
        "topics": topics,
        "state": "Stable",
        "protocol_type": "consumer",
        "group_type": "classic",
        "held_since": None,
        "cluster_id": "abc",
    }
    return GroupEvent(**(given | changes))  # type: ignore[arg-type]


def gone(name: str, reason: str = "deleted") -> GroupGone:
    partition = partition_for(name, 2)
    return GroupGone(1, "test", 7, 1_000, name, partition, LOG[partition], reason)


def topic(name: str, topic: str, number: int = 7) -> TopicEvent:
    return TopicEvent(1, "test", number, name, topic, 2, None, (5, 6), (5, 5), (0, 1))

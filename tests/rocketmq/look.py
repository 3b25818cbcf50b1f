"""What a round sees of one group on a real cluster, until it is what a test waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from streaming.config import Filters
from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.look import GroupParts
from streaming.rocketmq import Client

__all__ = ["holders", "look_until"]

_LIMIT_S = 60.0
_TIME = 1_795_582_476_897


def look_until(name_servers: Sequence[str], group: str, holds: Callable[[GroupParts], bool]) -> GroupParts:
    """Look again and again, until what is seen of a group is as wanted."""
    deadline = time.monotonic() + _LIMIT_S
    with Client() as client:
        cluster = RocketMQCluster(client, name_servers, Filters(groups=(group,)))
        while True:
            seen = cluster.look([group], frozenset(), _TIME, Deadline.after(30)).groups[group]
            if holds(seen):
                return seen
            assert time.monotonic() < deadline, seen
            time.sleep(0.1)


def holders(seen: GroupParts, topic: str) -> dict[str, list[str]]:
    """The clients that hold each queue of a topic, by "a0", "b3": the broker's last letter and the queue's id."""
    found: dict[str, list[str]] = {}
    for member in seen.members:
        for queue in member.queues or ():
            if queue.topic == topic and not queue.dropped:
                found.setdefault(f"{queue.broker[-1]}{queue.queue}", []).append(member.client_id)
    return dict(sorted(found.items()))

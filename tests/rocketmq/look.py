"""What a round sees of one group on a real cluster, until it is what a test waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from streaming.config import Filters
from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.records import RocketMQObservation
from streaming.rocketmq import Client

_LIMIT_S = 60.0
_TIME = 1_795_582_476_897


def look_until(
    name_servers: Sequence[str], group: str, holds: Callable[[RocketMQObservation], bool]
) -> RocketMQObservation:
    """Look again and again, until what is seen of a group is as wanted."""
    deadline = time.monotonic() + _LIMIT_S
    with Client() as client:
        cluster = RocketMQCluster(client, name_servers, Filters(groups=(group,)))
        while True:
            seen = cluster.observe_groups([group], frozenset(), _TIME, Deadline.after(30)).groups[group]
            if holds(seen):
                return seen
            assert time.monotonic() < deadline, seen
            time.sleep(0.1)


def holders(seen: RocketMQObservation, topic: str) -> dict[str, list[str]]:
    """The clients that hold each queue of a topic, by "a0", "b3": the broker's last letter and the queue's id."""
    found: dict[str, list[str]] = {}
    for member in seen.members:
        for queue in member.queues or ():
            if queue.topic == topic and not queue.dropped:
                found.setdefault(f"{queue.broker[-1]}{queue.queue}", []).append(member.client_id)
    return dict(sorted(found.items()))


def agree(seen: RocketMQObservation) -> bool:
    """Whether all brokers list the same clients: a heartbeat reaches one after the other."""
    return len({broker.clients for broker in seen.brokers}) == 1


def are_dealt_evenly(
    seen: RocketMQObservation, topic: str, members: int, queues: int, retries: int = 2, *, agreed: bool = True
) -> bool:
    """Whether every queue of a topic has one owner, each of so many members owns some, and its brokers list them all.

    Args:
        seen: A group of the topic's name.
        topic: Its topic.
        members: How many there are.
        queues: How many queues the topic has.
        retries: How many its topic of retries has.
        agreed: All name servers tell the same routes: one may hear of a topic later than the others.
    """
    of_topic = holders(seen, topic)
    brokers = {queue.broker for member in seen.members for queue in member.queues or () if queue.topic == topic}
    ids = tuple(member.client_id for member in seen.members)
    return (
        all(broker.clients == ids for broker in seen.brokers if broker.name in brokers)
        # A round asks for the topics first: one that is created meanwhile has owners and no route.
        and all(any(route.brokers for route in one.routes) for one in seen.topics)
        and (not agreed or all(route.brokers == one.routes[0].brokers for one in seen.topics for route in one.routes))
        and len(seen.members) == members
        and [len(of) for of in of_topic.values()] == [1] * queues
        and len({client for [client] in of_topic.values()}) == min(members, queues)
        and [len(of) for of in holders(seen, f"%RETRY%{topic}").values()] == [1] * retries
    )

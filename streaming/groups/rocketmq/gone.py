"""What no server names any more, and what of it counts as gone: silence is no evidence, a day without any name is.

A server names whatever it tells of, whether or not what it names answers. The probe counts brokers by the same rule
(`known_brokers`), so that a group's members and queues go when it would let go of the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from streaming.groups.units import unit_of
from streaming.records import RocketMQObservation
from streaming.times import DAY_MS

_KNOWN_MS: Final = DAY_MS
"""A broker, or all name servers that know it, may be down for hours and come back with clients, topics and offsets."""


def named_brokers(seen: RocketMQObservation) -> set[str]:
    """Brokers that any server names: those that were asked, and those of routes."""
    in_routes = {broker.name for topic in seen.topics for route in topic.routes for broker in route.brokers}
    return in_routes | {broker.name for broker in seen.brokers}


def named_places(seen: RocketMQObservation) -> set[str]:
    """Topics on brokers that any server names: those of routes, and those with queues."""
    places = set()
    for topic in seen.topics:
        places |= {unit_of(topic.topic, broker.name) for route in topic.routes for broker in route.brokers}
        places |= {unit_of(topic.topic, queues.broker) for queues in topic.queues}
    return places


def unnamed_since(before: Mapping[str, int], unnamed: Iterable[str], elapsed: int) -> dict[str, int]:
    """Elapsed time, ms, at the first of the rounds in a row that have not named something, by its name.

    Args:
        before: The same at the round before.
        unnamed: What this round does not name.
        elapsed: Elapsed time of this round, ms.
    """
    since = {name: before.get(name, elapsed) for name in sorted(unnamed)}
    return {name: first if 0 <= first <= elapsed else elapsed for name, first in since.items()}


def gone(unnamed: Mapping[str, int], elapsed: int) -> frozenset[str]:
    """What nobody has named for so long that it is gone."""
    return frozenset(name for name, first in unnamed.items() if elapsed - first >= _KNOWN_MS)

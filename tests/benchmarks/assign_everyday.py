"""The everyday group, 10 members and 100 partitions, for every recomputed strategy and library.

Libraries whose behaviour has changed have their newest release here; Java's `sticky` and the brokers have all eras.
"""

from __future__ import annotations

from dataclasses import replace

from assignors import Group, LeaderWouldFail, Subscription, assign
from assignors.brokers import assign_on_server
from assignors.clients.sticky import write_kafka_python, write_sticky
from tests.benchmarks.assign_groups import client_group, server_group
from tests.benchmarks.assign_times import Size, best
from tests.benchmarks.figure import Figure, Say

__all__ = ["everyday"]

_CLIENTS = (
    ("range", "java"),
    ("range", "librdkafka"),
    ("range", "kafka-python"),
    ("range", "aiokafka"),
    ("range", "franz-go"),
    ("range", "sarama"),
    ("roundrobin", "java"),
    ("roundrobin", "librdkafka"),
    ("roundrobin", "kafka-python"),
    ("roundrobin", "aiokafka"),
    ("roundrobin", "franz-go"),
    ("roundrobin", "sarama"),
    ("sticky", "java"),
    ("sticky", "java:3.5.2"),
    ("sticky", "java:3.5.0"),
    ("sticky", "java:3.4.1"),
    ("sticky", "java:3.4.0"),
    ("sticky", "java:2.8.1"),
    ("sticky", "java:2.8.0"),
    ("sticky", "java:2.4.0"),
    ("sticky", "kafka-python"),
    ("cooperative-sticky", "java"),
    ("cooperative-sticky", "librdkafka"),
    ("cooperative-sticky", "kafka-python"),
)
_SERVERS = (
    ("server-range", "4.4.0"),
    ("server-range", "3.8.1"),
    ("server-uniform", "4.4.0"),
    ("server-uniform", "4.0.0"),
    ("server-uniform", "3.9.1"),
)
# One topic, ten topics, and ten topics in five pairs, each pair subscribed by two members only.
_SHAPES = ((1, 100, 1), (10, 10, 1), (10, 10, 5))

_AIM = "1 ms"


def everyday(say: Say) -> list[Figure]:
    """The slower of a first assignment and a join, by strategy and library, in three shapes."""
    figures = []
    for strategy, library in (*_CLIENTS, *_SERVERS):
        say(f"{strategy}, {library}")
        times = [_slower(Size(strategy, "", 10, *shape), library) for shape in _SHAPES]
        shapes = ", ".join("the library fails" if ms is None else f"{ms:.2f}" for ms in times)
        figures.append(
            Figure(
                f"10 members x 100 partitions: {strategy}, {library}",
                f"{max(ms for ms in times if ms is not None):.2f} ms",
                _AIM,
                f"the slower of a first assignment and a join; one topic, ten, different subscriptions: {shapes}",
            )
        )
    return figures


def _slower(size: Size, library: str) -> float | None:
    try:
        if size.strategy.startswith("server"):
            first, target = best(size.runs, assign_on_server, size.strategy, server_group(size), library)
            return max(first, best(size.runs, assign_on_server, size.strategy, server_group(size, target), library)[0])
        first, result = best(size.runs, assign, size.strategy, client_group(size), library)
        joined = _told(size.strategy, library, client_group(size, result))
        return max(first, best(size.runs, assign, size.strategy, joined, library)[0])
    except LeaderWouldFail:
        return None


def _told(strategy: str, library: str, group: Group) -> Group:
    """The group whose members state their partitions in the format of the strategy and library."""
    if strategy != "sticky":
        return group
    return replace(group, members=tuple(_in_user_data(member, library) for member in group.members))


def _in_user_data(member: Subscription, library: str) -> Subscription:
    if member.generation is None:
        return replace(member, user_data=None)
    write = write_kafka_python if library == "kafka-python" else write_sticky
    return replace(member, owned=(), generation=None, user_data=write(member.owned, member.generation))

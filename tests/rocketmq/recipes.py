"""Ways to make a RocketMQ group go wrong, each with what shall be true of it at its end.

    A  strategies that differ: queues held twice and by nobody, for as long as the group lives
    B  a name server that knows less: a member that asks it believes in a smaller topic
    C  a member with a heartbeat to one broker only: clients that ask another broker do not count it
    D  one client id used by two processes: the second one's share belongs to nobody

Each is a context manager that yields the group's members, who rebalance every second so that it shows at once, and in
a sound group also ask for their routes every second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.rocketmq.member import RocketMQMember

FAST_S: Final = 1.0
"""From one rebalance to the next, where the Java client takes 20 s; from one route to the next, where it takes 30."""


@contextmanager
def steady(
    name_servers: Sequence[str], group: str, topic: str, count: int = 3, strategy: str = "AVG"
) -> Iterator[list[RocketMQMember]]:
    """A group in which nothing is wrong."""
    members = [
        RocketMQMember(name_servers, group, _client(number), [topic], strategy, rebalance_s=FAST_S, route_s=FAST_S)
        for number in range(count)
    ]
    with _running(members):
        yield members


@contextmanager
def strategies_that_differ(name_servers: Sequence[str], group: str, topic: str) -> Iterator[list[RocketMQMember]]:
    """Recipe A: members deal by AVG, AVG and AVG_BY_CIRCLE; of 4 + 4 queues two are held twice, two by nobody."""
    strategies = ("AVG", "AVG", "AVG_BY_CIRCLE")
    members = [_member(name_servers, group, number, [topic], name) for number, name in enumerate(strategies)]
    with _running(members):
        yield members


@contextmanager
def a_name_server_that_knows_less(
    name_servers: Sequence[str], group: str, topic: str
) -> Iterator[list[RocketMQMember]]:
    """Recipe B: three members take their routes from the first name server, one from the second.

    The second must lack a broker of the topic: `EmbeddedRocketMQ(folder, name_servers=2, registers={"broker-b": [0]})`.
    """
    knowing = [_member(name_servers[:1], group, number, [topic]) for number in range(3)]
    with _running([*knowing, _member(name_servers[1:2], group, 3, [topic])]) as members:
        yield members


@contextmanager
def a_heartbeat_to_one_broker_only(
    name_servers: Sequence[str], group: str, topic: str, away_from: str
) -> Iterator[list[RocketMQMember]]:
    """Recipe C: two sound members, and one that one broker never hears of."""
    members = [_member(name_servers, group, number, [topic]) for number in range(2)]
    odd = RocketMQMember(name_servers, group, _client(2), [topic], away_from=[away_from], rebalance_s=FAST_S)
    with _running([*members, odd]) as running:
        yield running


@contextmanager
def unhurried(name_servers: Sequence[str], group: str, topic: str) -> Iterator[list[RocketMQMember]]:
    """Three sound members that rebalance as slowly as Java's."""
    members = [RocketMQMember(name_servers, group, _client(number), [topic]) for number in range(3)]
    with _running(members):
        yield members


@contextmanager
def one_client_id_twice(name_servers: Sequence[str], group: str, topic: str) -> Iterator[list[RocketMQMember]]:
    """Recipe D: three processes, two of which have the same client id."""
    numbers = (0, 0, 1)
    with _running([_member(name_servers, group, number, [topic]) for number in numbers]) as members:
        yield members


@contextmanager
def a_group_that_broadcasts(name_servers: Sequence[str], group: str, topic: str) -> Iterator[list[RocketMQMember]]:
    """No recipe for a split brain, though every member holds every queue: BROADCASTING is made so."""
    members = [
        RocketMQMember(name_servers, group, _client(number), [topic], model="BROADCASTING", rebalance_s=FAST_S)
        for number in range(2)
    ]
    with _running(members):
        yield members


def _client(number: int) -> str:
    return f"10.0.0.{number + 1}@{number + 1}"


def _member(
    name_servers: Sequence[str], group: str, number: int, topics: Sequence[str], strategy: str = "AVG"
) -> RocketMQMember:
    return RocketMQMember(name_servers, group, _client(number), topics, strategy, rebalance_s=FAST_S)


@contextmanager
def _running(members: list[RocketMQMember]) -> Iterator[list[RocketMQMember]]:
    with ExitStack() as stack:
        for member in members:
            stack.enter_context(member)
        yield members

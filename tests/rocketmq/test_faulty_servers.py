"""A broker or a name server that answers slowly, wrongly or never: what it does not say is missing, nothing is false.

Only the probe meets the fault: it asks through proxies. The group behind them is sound all the time, and so are its
owners and its lag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from streaming.probe.exceptions import RoundAbandonedError
from streaming.records import RocketMQObservation
from streaming.rocketmq import Request
from tests.rocketmq import recipes
from tests.rocketmq.followed import Followed
from tests.rocketmq.look import are_dealt_evenly, look_until
from tests.rocketmq.proxies import (
    Fault,
    Proxies,
    Proxy,
    answering,
    garbled,
    only,
    passed,
    reset,
    slow,
    swallowed,
    truncated,
)
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.xdist_group("rocketmq")]

_LASTING = 18
"""Rounds of ten seconds: beyond the longest that any finding waits for."""

_LOOKS = 3
_SENT = 3
_PATIENCE_S = 1.0
"""For an answer, where the probe takes 3 s: much is waited for here."""

FAULTS: dict[str, Fault] = {
    "swallowed": swallowed,
    "reset": reset,
    "truncated": truncated,
    "garbled": garbled(1),
    "an error": answering(1),
    "busy": answering(2),
    "an empty body": answering(0, b"{}"),
    "no body": answering(0),
    "another body": answering(0, b'{"table":{}}'),
    "slow": slow(0.1),
}
"""What a server can do to all of its answers."""

ASKED = {
    "connections": Request.GET_CONSUMER_CONNECTION_LIST,
    "members": Request.GET_CONSUMER_RUNNING_INFO,
    "offsets": Request.GET_ALL_CONSUMER_OFFSET,
    "ends": Request.GET_TOPIC_STATS_INFO,
    "settings": Request.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    "release": Request.GET_BROKER_RUNTIME_INFO,
}
"""What a broker is asked for; each can be what it fails to answer alone."""


@pytest.fixture(scope="module")
def proxies(rocketmq: EmbeddedRocketMQ) -> Iterator[Proxies]:
    with Proxies.before(rocketmq) as running:
        yield running


@pytest.fixture(scope="module")
def topic(rocketmq: EmbeddedRocketMQ) -> Iterator[str]:
    """A group and its topic, with two members and consumed messages in each queue."""
    name = "behind-proxies"
    first = rocketmq.addresses[:1]
    with rocketmq.commands() as commands:
        commands.create_topic(name, 4)
    with rocketmq.commands() as commands, recipes.steady(first, name, name, count=2):
        # (While two hold a queue, the one that gives it up may commit less than the other has.)
        look_until(first, name, lambda seen: are_dealt_evenly(seen, name, 2, 8))
        for broker in rocketmq.brokers:
            for queue in range(4):
                commands.send(name, broker, queue, [b"x"] * _SENT)
        yield name


def is_sound(seen: RocketMQObservation, topic: str) -> bool:
    """Whether every queue has one owner, and everything is consumed and told."""
    of_topic = [queues for one in seen.topics if one.topic == topic for queues in one.queues]
    consumed = [queues.committed == queues.max and min(queues.max) >= _SENT for queues in of_topic]
    return are_dealt_evenly(seen, topic, 2, 8) and consumed == [True, True]


def lag_of(group: Followed, topic: str) -> list[tuple[int | None, str]]:
    """Lag and status of each of a topic's queues, by its newest row."""
    newest = {(row.broker, row.partition): (row.lag, row.lag_status) for row in group.rows.lag if row.topic == topic}
    return [newest[place] for place in sorted(newest, key=str)]


def consume_more(cluster: EmbeddedRocketMQ, topic: str) -> None:
    """Send a message to each broker, and wait until it is consumed and committed, as the cluster itself tells it."""
    with cluster.commands() as commands:
        for broker in cluster.brokers:
            commands.send(topic, broker, 0, [b"x"])
    look_until(cluster.addresses[:1], topic, lambda seen: is_sound(seen, topic))


def check(proxies: Proxies, topic: str, faulty: Sequence[Proxy], fault: Fault, said: str | None = None) -> None:
    """Follow the group before, while and after some servers have a fault.

    Args:
        proxies: The proxies.
        topic: Name of the topic and of the group.
        faulty: Those with a fault.
        fault: Their fault.
        said: The finding that must hold meanwhile; None for none.
    """
    expected = set() if said is None else {said}
    with Followed(proxies.addresses, topic, _PATIENCE_S) as group:
        group.round(group.look_until(lambda seen: is_sound(seen, topic)), _LASTING)
        assert lag_of(group, topic) == [(0, "ok")] * 8
        for proxy in faulty:
            proxy.fault = fault
        try:
            consume_more(proxies.cluster, topic)
            for _ in range(_LOOKS):
                group.round(group.look(), _LASTING // _LOOKS)
            assert group.findings.keys() == group.said == expected
        finally:
            for proxy in faulty:
                proxy.fault = passed
        assert set(lag_of(group, topic)) <= {(0, "ok"), (None, "unknown")}
        group.round(group.look_until(lambda seen: is_sound(seen, topic)), _LASTING)
        assert lag_of(group, topic) == [(0, "ok")] * 8
        assert group.findings == {}
        assert group.said == expected
        assert [row.kind for row in group.rows.rebalance_churn] == ["created"]
        assert {row.verdict for row in group.rows.drift} == {"identical"}
        assert {(row.ended, row.verdict) for row in group.rows.group_health[1:]} == {(False, "identical")}


def said_of(fault: str) -> str | None:
    """The finding about brokers with a fault in all of their answers."""
    return None if fault == "slow" else "broker_not_answering"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broker_with_a_fault(proxies: Proxies, topic: str, fault: str) -> None:
    check(proxies, topic, [proxies.brokers["broker-b"]], FAULTS[fault], said_of(fault))


@pytest.mark.parametrize("fault", FAULTS)
def test_all_brokers_with_a_fault(proxies: Proxies, topic: str, fault: str) -> None:
    check(proxies, topic, list(proxies.brokers.values()), FAULTS[fault], said_of(fault))


@pytest.mark.parametrize("fault", FAULTS)
def test_one_of_two_name_servers_with_a_fault(proxies: Proxies, topic: str, fault: str) -> None:
    check(proxies, topic, proxies.name_servers[1:], FAULTS[fault])


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("fault", ["swallowed", "an error"])
def test_a_broker_that_fails_at_one_kind_of_request(proxies: Proxies, topic: str, asked: str, fault: str) -> None:
    said = "broker_not_answering" if asked == "connections" and fault == "swallowed" else None
    check(proxies, topic, [proxies.brokers["broker-b"]], only({ASKED[asked]}, FAULTS[fault]), said)


def test_without_any_name_server_no_round_closes_and_the_next_one_is_whole_again(proxies: Proxies, topic: str) -> None:
    with Followed(proxies.addresses, topic, _PATIENCE_S) as group:
        group.round(group.look_until(lambda seen: is_sound(seen, topic)), _LASTING)
        for proxy in proxies.name_servers:
            proxy.fault = swallowed
        try:
            with pytest.raises(RoundAbandonedError, match="no name server answered"):
                group.look()
        finally:
            for proxy in proxies.name_servers:
                proxy.fault = passed
        group.round(group.look_until(lambda seen: is_sound(seen, topic)), _LASTING)
        assert group.said == set()
        assert len(group.rows.rebalance_churn) == 1

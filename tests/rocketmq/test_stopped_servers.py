"""Servers and clients that are stopped (SIGSTOP): their connections stay open, and they say nothing to anybody."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.rocketmq import recipes
from tests.rocketmq.commands import UNREGISTER_BROKER
from tests.rocketmq.followed import Followed
from tests.rocketmq.java_members import JavaMembers
from tests.rocketmq.look import are_dealt_evenly, holders
from tests.rocketmq.member import RocketMQMember
from tests.rocketmq.servers import EmbeddedRocketMQ, Server

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.xdist_group("rocketmq"), pytest.mark.turn(2)]

_LASTING = 18
"""Rounds of ten seconds: beyond the longest that any finding waits for."""

_PATIENCE_S = 1.0
_STEP_S = 5.0
_LONG_S = 240.0
"""Two minutes until a silent server or client is given up, twice."""


@contextmanager
def stopped(pid: int | None) -> Iterator[None]:
    """A process that does nothing for as long as the context."""
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def follow_until(group: Followed, holds: Callable[[], bool]) -> None:
    """Rounds in real time until something holds."""
    limit = time.monotonic() + _LONG_S
    while not holds():
        assert time.monotonic() < limit, (group.findings, group.rows.rebalance_churn[-1])
        began = time.monotonic()
        group.round(group.look(), step_ms=int(_STEP_S * 1000))
        time.sleep(max(0.0, began + _STEP_S - time.monotonic()))


def is_cause(group: Followed, *causes: str) -> bool:
    return [cause.cause for cause in group.causes()] == list(causes)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[EmbeddedRocketMQ, Server]]:
    """A cluster in which both name servers know both brokers, and a third broker that has not been started."""
    made = EmbeddedRocketMQ(tmp_path, brokers=("broker-a", "broker-b", "broker-c"), name_servers=2)
    late = made.brokers.pop("broker-c")
    with made:
        yield made, late
        late.kill()


@pytest.mark.timeout(900)
def test_a_broker_that_is_stopped_until_the_name_servers_give_it_up(
    cluster: tuple[EmbeddedRocketMQ, Server], unique: str
) -> None:
    running, _ = cluster
    with running.commands() as commands:
        commands.create_topic(unique, 4)
    with (
        recipes.steady(running.addresses, unique, unique, count=2),
        Followed(running.addresses, unique, _PATIENCE_S) as group,
    ):
        group.round(group.look_until(lambda seen: are_dealt_evenly(seen, unique, 2, 8)), _LASTING)
        with stopped(running.brokers["broker-b"].pid):
            follow_until(group, lambda: "broker_not_answering" in group.findings)
            follow_until(group, lambda: is_cause(group, "broker_down") and group.findings == {})
        follow_until(group, lambda: is_cause(group, "broker_up") and group.findings == {})
    # (The route is taken from each name server within seconds of each other, and so is a broker's return; the members
    # tell the broker that they are there within 5 s.)
    assert group.said <= {"broker_not_answering", "member_lists_differ"}
    assert {row.verdict for row in group.rows.drift} <= {"identical", "unverified"}


@pytest.mark.timeout(900)
def test_a_java_member_that_is_stopped_until_the_brokers_give_it_up(
    cluster: tuple[EmbeddedRocketMQ, Server], unique: str
) -> None:
    running, _ = cluster
    with running.commands() as commands:
        commands.create_topic(unique, 4)
    with (
        recipes.steady(running.addresses, unique, unique, count=2),
        JavaMembers(running.addresses, unique, [unique], [("AVG", "10.0.0.9", "9")]) as java,
        Followed(running.addresses, unique, _PATIENCE_S) as group,
    ):
        group.round(group.look_until(lambda seen: are_dealt_evenly(seen, unique, 3, 8)), _LASTING)
        assert group.said == set()
        with stopped(java.pid):
            follow_until(group, lambda: set(group.findings) == {"not_answering"})
            follow_until(group, lambda: is_cause(group, "member_frozen") and group.findings == {})
    assert group.said <= {"not_answering", "member_lists_differ"}


@pytest.mark.timeout(900)
def test_a_broker_that_joins_the_cluster_and_a_name_server_that_forgets_one(
    cluster: tuple[EmbeddedRocketMQ, Server], unique: str
) -> None:
    running, late = cluster
    with running.commands() as commands:
        commands.create_topic(unique, 4, ["broker-a"])
    # One member takes its routes from the second name server.
    with (
        recipes.steady(running.addresses[:1], unique, unique, count=2),
        RocketMQMember(
            running.addresses[1:],
            unique,
            "10.0.0.3@3",
            [unique],
            rebalance_s=recipes.FAST_S,
            route_s=recipes.FAST_S,
        ),
        Followed(running.addresses, unique) as group,
    ):
        group.round(group.look_until(lambda seen: are_dealt_evenly(seen, unique, 3, 4, 1)), _LASTING)
        running.brokers["broker-c"] = late
        running.restart("broker-c")
        with running.commands() as commands:
            commands.create_topic(unique, 4, ["broker-c"])
        group.round(group.look_until(lambda seen: are_dealt_evenly(seen, unique, 3, 8, 2)), _LASTING)
        assert [(cause.cause, cause.after) for cause in group.causes()] == [("broker_added", "broker-c")]
        assert group.said == set()
        with running.commands() as commands:
            fields = {
                "brokerName": "broker-c",
                "brokerAddr": late.address,
                "clusterName": "evenkeel",
                "brokerId": "0",
            }
            commands.ask(running.addresses[1], UNREGISTER_BROKER, fields)
            group.round(
                group.look_until(
                    lambda seen: (
                        len({client for of in holders(seen, unique).values() for client in of}) == 3
                        and any(len(of) > 1 for of in holders(seen, unique).values())
                    )
                ),
                _LASTING,
            )
            assert "name_server_differs" in {cause.cause for cause in group.causes()}
            assert {"route_differs", "split_brain"} <= group.findings.keys()
            commands.register(late.address)
        group.round(group.look_until(lambda seen: are_dealt_evenly(seen, unique, 3, 8, 2)), _LASTING)
        assert "name_server_differs" in {cause.cause for cause in group.causes()}
        assert group.findings == {}

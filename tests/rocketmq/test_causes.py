"""Why real groups decide again: each change of a real cluster is the cause of what follows, and nothing else is."""

from __future__ import annotations

import pytest

from tests.rocketmq import recipes
from tests.rocketmq.followed import Followed
from tests.rocketmq.look import are_dealt_evenly, holders
from tests.rocketmq.member import RocketMQMember
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("rocketmq"), pytest.mark.turn(6)]

_C2, _C3 = "10.0.0.2@2", "10.0.0.3@3"

_LASTING = 18
"""Rounds of ten seconds: beyond the longest that any finding waits for."""


@pytest.fixture
def topic(rocketmq: EmbeddedRocketMQ, unique: str) -> str:
    """A topic of its own, with four queues on each broker."""
    with rocketmq.commands() as commands:
        commands.create_topic(unique, 4)
    return unique


def settle(
    group: Followed, topic: str, members: int = 2, queues: int = 8, retries: int = 2, *, agreed: bool = True
) -> None:
    """Wait until a group has come to rest, and let rounds see it so for longer than any finding waits."""
    look = group.look_until(lambda seen: are_dealt_evenly(seen, topic, members, queues, retries, agreed=agreed))
    group.round(look, _LASTING)


def causes(group: Followed) -> list[tuple[str, str | None, str | None]]:
    """Causes of the newest decision, each with what was before and after."""
    return [(cause.cause, cause.before, cause.after) for cause in group.causes()]


def test_members_that_join_leave_and_change_their_strategy(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.steady(first, topic, topic, count=2) as members, Followed(first, topic) as group:
        settle(group, topic)
        with RocketMQMember(first, topic, _C3, [topic], rebalance_s=recipes.FAST_S) as joining:
            settle(group, topic, members=3)
            assert [cause.cause for cause in group.causes()] == ["member_joined"]
            joining.vanish()
        settle(group, topic)
        assert [cause.cause for cause in group.causes()] == ["member_gone"]
        for member in members:
            member.use("AVG_BY_CIRCLE")
        look = group.look_until(
            lambda seen: are_dealt_evenly(seen, topic, 2, 8) and holders(seen, topic)["a1"] == [_C2]
        )
        group.round(look, _LASTING)
        assert causes(group) == [("strategy_changed", "AVG", "AVG_BY_CIRCLE")]
    assert group.said == set()
    assert {row.verdict for row in group.rows.drift} == {"identical"}
    moves = [(row.partitions_moved, row.partitions_moved_optimal) for row in group.rows.rebalance_churn]
    assert moves[0] == (None, None)
    assert all(moved is not None and least is not None and moved >= least for moved, least in moves[1:])


def test_queues_that_grow_and_shrink(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with (
        rocketmq.commands() as commands,
        recipes.steady(first, topic, topic, count=2),
        Followed(first, topic) as group,
    ):
        settle(group, topic)
        commands.create_topic(topic, 6)
        settle(group, topic, queues=12)
        assert causes(group) == [("partitions_changed", "broker-a 4, broker-b 4", "broker-a 6, broker-b 6")]
        commands.create_topic(topic, 2)
        settle(group, topic, queues=4)
        assert causes(group) == [("partitions_changed", "broker-a 6, broker-b 6", "broker-a 2, broker-b 2")]
    assert group.said == set()
    assert {row.verdict for row in group.rows.drift} == {"identical"}


@pytest.mark.nightly
def test_a_broker_that_goes_down_and_comes_back(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.steady(first, topic, topic, count=2), Followed(first, topic) as group:
        settle(group, topic)
        rocketmq.brokers["broker-b"].kill()
        settle(group, topic, queues=4, retries=1)
        assert causes(group) == [("broker_down", "broker-b", None)]
        rocketmq.restart("broker-b")
        settle(group, topic)
        assert causes(group) == [("broker_up", None, "broker-b")]
    assert group.said == set()
    assert {row.verdict for row in group.rows.drift} == {"identical"}


@pytest.mark.nightly
def test_a_topic_that_comes_to_a_further_broker_which_one_name_server_does_not_know(
    rocketmq: EmbeddedRocketMQ, unique: str
) -> None:
    with rocketmq.commands() as commands:
        commands.create_topic(unique, 4, ["broker-a"])
        with (
            recipes.steady(rocketmq.addresses[:1], unique, unique, count=2),
            Followed(rocketmq.addresses, unique) as group,
        ):
            settle(group, unique, queues=4, retries=1)
            assert group.said == set()
            commands.create_topic(unique, 4, ["broker-b"])
            settle(group, unique, agreed=False)
    assert causes(group) == [("broker_added", None, "broker-b"), ("name_server_differs", "", rocketmq.addresses[1])]
    # (The members ask the name server that knows both: no owner is wrong.)
    assert group.said == {"route_differs"}
    assert {row.verdict for row in group.rows.drift} == {"identical"}

"""What goes wrong in real groups is found, by its own name and cause, and nothing else is said."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Self

import msgspec
import pytest

from streaming.config import Filters
from streaming.events import decode_event, encode
from streaming.groups import GroupConfig, Rows, advance
from streaming.groups.rows import Cause, DriftRow, Finding
from streaming.groups.state import GroupState
from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.observe import RocketMQLook, RocketMQMemory, round_of_groups
from streaming.records import RocketMQObservation, decode_inputs, encode_inputs
from streaming.rocketmq import Client
from tests.rocketmq import recipes
from tests.rocketmq.java_members import JavaMembers
from tests.rocketmq.look import agree, are_dealt_evenly, holders, look_until
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("broker"), pytest.mark.turn(10)]


INTERVAL_MS: Final = 10_000
"""The probe's default."""

_START: Final = 1_795_582_476_897
_LIMIT_S = 60.0
_PAUSE_S = 0.1
_HEARTBEAT_MS = 600_000


class Followed:
    """One group. A context manager: it holds the client that asks.

    Attributes:
        rows: Rows of all rounds.
        findings: The findings that hold after the newest round, by name.
        said: Names of all findings that any round has shown.
    """

    def __init__(self, name_servers: Sequence[str], group: str, request_s: float = 3.0) -> None:
        """Follow a group, from before its first round.

        Args:
            name_servers: Addresses that are asked.
            group: The group.
            request_s: How long a server may take to answer.
        """
        self._group = group
        self._filters = Filters(groups=(group,))
        self._client = Client()
        self._cluster = RocketMQCluster(self._client, tuple(name_servers), self._filters, request_s)
        self._memory = RocketMQMemory()
        self._number, self._time = 0, _START
        self._state: GroupState | None = None
        self.rows = Rows()
        self.findings: dict[str, Finding] = {}
        self.said: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def look(self) -> RocketMQLook:
        """Ask the cluster; no round yet."""
        return self._cluster.observe_groups([self._group], frozenset(), self._time, Deadline.after(30))

    def look_until(self, holds: Callable[[RocketMQObservation], bool]) -> RocketMQLook:
        """Ask again and again until the group is as wanted, for a minute at most."""
        limit = time.monotonic() + _LIMIT_S
        while True:
            look = self.look()
            if self._group in look.groups and holds(look.groups[self._group]):
                return look
            assert time.monotonic() < limit, look.groups.get(self._group)
            time.sleep(_PAUSE_S)

    def round(self, look: RocketMQLook, times: int = 1, step_ms: int = INTERVAL_MS) -> None:
        """Let rounds see the same."""
        for _ in range(times):
            self._number, self._time = self._number + 1, self._time + step_ms
            events, self._memory = round_of_groups(
                *("test", self._number, self._time, look, self._memory, self._filters),
                *(_HEARTBEAT_MS, INTERVAL_MS),
            )
            for event in events:
                decoded = decode_event(encode(event))
                self._advance(decoded.saw)

    def _advance(self, saw: RocketMQObservation) -> None:
        seen = msgspec.structs.replace(saw, elapsed=saw.time - _START, closed=saw.time + 500)
        inputs = decode_inputs(encode_inputs([seen]))
        self._state, rows = advance(self._state, self._group, inputs, GroupConfig("test"))
        for table in rows.__struct_fields__:
            getattr(self.rows, table).extend(getattr(rows, table))
        if rows.group_health:
            self.findings = {found.finding: found for found in rows.group_health[-1].findings}
            self.said |= self.findings.keys()

    def causes(self) -> list[Cause]:
        """The causes of the newest decision."""
        return list(self.rows.rebalance_churn[-1].causes or ())

    def verdict(self, topic: str) -> DriftRow:
        """The newest verdict on a topic."""
        return [row for row in self.rows.drift if row.topic == topic][-1]


_C1, _C2, _C3, _C4 = "10.0.0.1@1", "10.0.0.2@2", "10.0.0.3@3", "10.0.0.4@4"

_EVEN = {
    "a0": [_C1],
    "a1": [_C1],
    "a2": [_C1],
    "a3": [_C2],
    "b0": [_C2],
    "b1": [_C2],
    "b2": [_C3],
    "b3": [_C3],
}
"""4 + 4 queues dealt by AVG to three."""

_LASTING = 18
"""Rounds of ten seconds: beyond the longest that any finding waits for."""


@pytest.fixture
def topic(rocketmq: EmbeddedRocketMQ, unique: str) -> str:
    """A topic of its own, with four queues on each broker."""
    with rocketmq.commands() as commands:
        commands.create_topic(unique, 4)
    return unique


def is_even(seen: RocketMQObservation, topic: str) -> bool:
    """Whether three members hold what AVG gives them, of the topic and of its topic of retries."""
    retries = holders(seen, f"%RETRY%{topic}")
    # A round asks for the topics first: one that is created meanwhile has owners and no route.
    routes = all(any(route.brokers for route in one.routes) for one in seen.topics)
    return agree(seen) and routes and holders(seen, topic) == _EVEN and [len(of) for of in retries.values()] == [1, 1]


def unlocked(seen: RocketMQObservation, topic: str) -> list[str]:
    """Queues of a topic that members hold without a lock, as in `holders`."""
    return sorted(
        f"{queue.broker[-1]}{queue.queue}"
        for member in seen.members
        for queue in member.queues or ()
        if queue.topic == topic and not queue.locked
    )


@pytest.mark.nightly
def test_java_members_and_ours_share_a_group_as_their_strategy_says(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    java = [("AVG", "10.0.0.2", "2"), ("AVG", "10.0.0.3", "3")]
    with JavaMembers(first, topic, [topic], java), recipes.steady(first, topic, topic, count=1):
        with rocketmq.commands() as commands:
            commands.send(topic, "broker-a", 1, [b"x"] * 3)

        def is_dealt(seen: RocketMQObservation) -> bool:
            [of_topic] = [one for one in seen.topics if one.topic == topic]
            committed = of_topic.queues[0].committed if of_topic.queues else None
            return committed is not None and committed[1:2] == (3,) and holders(seen, topic) == _EVEN

        seen = look_until(first, topic, is_dealt)
    of_java = seen.members[1]
    assert (of_java.version, of_java.language, of_java.orderly, of_java.client_rebalance) == (
        "V5_5_0",
        "JAVA",
        False,
        True,
    )
    assert of_java.strategy == "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
    assert [one.topic for one in of_java.subscriptions or ()] == [f"%RETRY%{topic}", topic]
    [of_topic] = [one for one in seen.topics if one.topic == topic]
    assert (of_topic.queues[0].max, of_topic.queues[0].min) == ((0, 3, 0, 0), (0, 0, 0, 0))


def test_of_a_sound_group_nothing_is_said(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.steady(first, topic, topic), Followed(first, topic) as group:
        group.round(group.look_until(lambda seen: is_even(seen, topic)), _LASTING)
    assert group.said == set()
    assert [row.verdict for row in group.rows.drift] == ["identical", "identical"]
    [created] = group.rows.rebalance_churn
    assert (created.kind, created.members, created.partitions) == ("created", 3, 10)


@pytest.mark.nightly
def test_a_members_with_different_strategies(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    split = {"a0": [_C1], "a1": [_C1], "a2": [_C1, _C3], "a3": [_C2], "b0": [_C2], "b1": [_C2, _C3]}

    def is_split(seen: RocketMQObservation) -> bool:
        retries = holders(seen, f"%RETRY%{topic}") == {"a0": [_C1], "b0": [_C2]}
        return agree(seen) and holders(seen, topic) == split and retries

    with (
        rocketmq.commands() as commands,
        recipes.strategies_that_differ(first, topic, topic),
        Followed(first, topic) as group,
    ):
        group.look_until(is_split)
        commands.send(topic, "broker-b", 2, [b"x"] * 3)
        group.round(group.look_until(is_split), _LASTING)
    assert set(group.findings) == {"mixed_strategies", "doubly_held", "held_by_nobody", "split_brain"}
    nobody = f"{topic}@broker-b 2 (3 unread), {topic}@broker-b 3 (0 unread)"
    assert nobody in group.findings["held_by_nobody"].detail
    assert "AVG (10.0.0.1@1, 10.0.0.2@2), AVG_BY_CIRCLE (10.0.0.3@3)" in group.findings["mixed_strategies"].detail
    verdict = group.verdict(topic)
    assert (verdict.verdict, verdict.drifted_count) == ("drifted", 4)
    assert [(one.broker, one.partition, one.kind) for one in verdict.drifted_partitions] == [
        ("broker-a", 2, "doubly_assigned"),
        ("broker-b", 1, "doubly_assigned"),
        ("broker-b", 2, "unassigned"),
        ("broker-b", 3, "unassigned"),
    ]


@pytest.mark.nightly
def test_b_a_name_server_that_knows_less(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    with (
        recipes.a_name_server_that_knows_less(rocketmq.addresses, topic, topic),
        Followed(rocketmq.addresses, topic) as group,
    ):
        # Three see 8 queues for four or three members, the fourth sees 4 for four: whichever broker is asked, queues
        # of broker-a are held by two.
        look = group.look_until(
            lambda seen: (
                [len(broker.clients) for broker in seen.brokers] == [4, 3]
                and any(len(of) > 1 for of in holders(seen, topic).values())
            )
        )
        group.round(look, _LASTING)
    assert {"route_differs", "split_brain", "doubly_held"} <= set(group.findings)
    assert group.said <= {
        "route_differs",
        "split_brain",
        "doubly_held",
        "held_by_nobody",
        "member_lists_differ",
        "idle_members",
    }
    assert f"{rocketmq.addresses[1]} lacks brokers broker-b" in group.findings["route_differs"].detail
    # The member that does not know broker-b is not on its list either.
    assert f"{_C4} is not on the list of broker-b" in group.findings["member_lists_differ"].detail


@pytest.mark.nightly
def test_d_a_way_that_is_lost_is_told_before_an_owner_is_wrong(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.steady(first, topic, topic) as members, Followed(first, topic) as group:
        group.round(group.look_until(lambda seen: is_even(seen, topic)), _LASTING)
        assert group.said == set()
        members[-1].keep_away("broker-b")
        group.round(group.look_until(lambda seen: [len(broker.clients) for broker in seen.brokers] == [3, 2]), 2)
        assert set(group.findings) == {"member_lists_differ"}
        members[-1].come_back("broker-b")
        whole = group.look_until(
            lambda seen: [len(broker.clients) for broker in seen.brokers] == [3, 3] and is_even(seen, topic)
        )
        group.round(whole, 2)
        assert set(group.findings) == set()


@pytest.mark.nightly
def test_e_a_client_id_used_twice(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.one_client_id_twice(first, topic, topic), Followed(first, topic) as group:
        look = group.look_until(
            lambda seen: agree(seen) and set(holders(seen, topic)) == {"a0", "a1", "a2", "b2", "b3"}
        )
        group.round(look, 10)
        assert set(group.findings) == {"held_by_nobody"}
        group.round(look, 8)
    assert set(group.findings) == {"duplicate_client_id", "held_by_nobody", "split_brain"}
    assert _C1 in group.findings["duplicate_client_id"].detail
    assert group.verdict(topic).verdict == "drifted"


@pytest.mark.nightly
def test_a_group_that_broadcasts_is_no_split_brain(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.a_group_that_broadcasts(first, topic, topic), Followed(first, topic) as group:
        look = group.look_until(
            lambda seen: agree(seen) and [len(of) for of in holders(seen, topic).values()] == [2] * 8
        )
        group.round(look, _LASTING)
    assert group.said == set()
    assert {row.verdict for row in group.rows.drift} == {"not_applicable"}
    assert {(row.lag, row.reason) for row in group.rows.lag} == {(None, "kept_by_members")}


def test_a_frozen_member_does_not_answer_and_is_the_cause_once_it_is_gone(
    rocketmq: EmbeddedRocketMQ, topic: str
) -> None:
    first = rocketmq.addresses[:1]
    with recipes.steady(first, topic, topic, count=2) as members, Followed(first, topic) as group:
        group.round(
            group.look_until(
                lambda seen: (
                    agree(seen)
                    and [len(of) for of in holders(seen, topic).values()] == [1] * 8
                    and [len(of) for of in holders(seen, f"%RETRY%{topic}").values()] == [1, 1]
                )
            ),
            4,
        )
        members[0].freeze()
        frozen = group.look_until(lambda seen: seen.members[0].answer == "timeout")
        group.round(frozen, 6)
        assert set(group.findings) == {"not_answering"}
        # As after 120 s without a heartbeat: the brokers take it off, the other one takes over.
        members[0].vanish()
        left = group.look_until(
            lambda seen: (
                agree(seen)
                and [member.client_id for member in seen.members] == [_C2]
                and list(holders(seen, topic).values()) == [[_C2]] * 8
            )
        )
        group.round(left, 4)
    assert set(group.findings) == set()
    assert [cause.cause for cause in group.causes()] == ["member_gone"]


@pytest.mark.nightly
def test_an_orderly_member_without_the_brokers_lock(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    # Java asks for its locks and rebalances every 20 s, and for its routes every 30 s; here every second.
    client = "-Drocketmq.client.rebalance"
    fast = (f"{client}.lockInterval=1000", f"{client}.waitInterval=1000", "-Dmembers.pollNameServerInterval=1000")
    with (
        JavaMembers(first, topic, [topic], [("AVG", "10.0.0.1", "1")], orderly=True, options=fast),
        rocketmq.commands() as commands,
        Followed(first, topic) as group,
    ):
        whole = group.look_until(lambda seen: are_dealt_evenly(seen, topic, 1, 8) and unlocked(seen, topic) == [])
        group.round(whole, _LASTING)
        assert group.said == set()
        # Somebody else gets the lock of one queue, as another member did whose view has ended since.
        while not commands.lock(topic, "10.0.0.9@9", topic, "broker-a", 1):
            commands.unlock(topic, _C1, topic, "broker-a", 1)
        group.round(group.look_until(lambda seen: unlocked(seen, topic) == ["a1"]), _LASTING)
        assert set(group.findings) == {"orderly_not_locked"}
        assert f"{topic}@broker-a 1 (10.0.0.1@1)" in group.findings["orderly_not_locked"].detail
        assert {row.verdict for row in group.rows.drift} == {"identical"}
        commands.unlock(topic, "10.0.0.9@9", topic, "broker-a", 1)
        group.round(group.look_until(lambda seen: unlocked(seen, topic) == []), 2)
        assert group.findings == {}

"""A group by which its coordinator fails: `StreamsGroup.asDescribedGroup` of Kafka throws without a topology, say.

Kafka answers with the error for all groups of the request that are in the same partition of the offsets log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from kafka.protocol.admin import DescribeGroupsRequest

from streaming.config import Filters
from streaming.events import GroupEvent
from streaming.probe import RoundAbandonedError
from streaming.probe.clients import Connections
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.cluster import KafkaCluster, LogPositions, OffsetsLogView
from streaming.probe.kafka.look import GroupsSeen, RoundHead
from streaming.probe.kafka.memory import Memory, memory_after
from streaming.probe.kafka.messages import StreamsGroupDescribeRequest
from streaming.probe.kafka.observe import round_events, seen_round
from streaming.probe.kafka.requests import GroupRequests, Refused
from streaming.records import ADMIN, Seen, SeenCommits
from tests.probe.kafka.build import HIDDEN, POSITIONS, SOON, Answers, MakeCluster, MakeHead, listed
from tests.probe.kafka.build import OFFSETS_LOG as LOG

UNKNOWN_SERVER_ERROR, COORDINATOR_LOADING = -1, 14
NODES = {f"g{number}": 1 + number % 2 for number in range(230)}


class Brokers:
    """Connections to brokers that fail by one group: in an answer for all that were asked with it, or without one."""

    def __init__(self, poison: str, code: int | None) -> None:
        self._poison, self._code = poison, code
        self.asked: list[int] = []

    def knows(self, _: object) -> bool:
        return True

    def ask(self, work: Sequence[tuple[int, Any]], _: Deadline, *, needs_all: bool) -> list[Any]:
        assert not needs_all
        self.asked += [len(names(request)) for _, request in work]
        return [self._answer(names(request)) for _, request in work]

    def _answer(self, groups: Sequence[str]) -> Any:
        code = self._code if self._poison in groups else 0
        if code is None:
            return None
        return SimpleNamespace(groups=[SimpleNamespace(group_id=group, error_code=code) for group in groups])


def names(request: Any) -> Sequence[str]:
    return request.groups if request.name == "DescribeGroupsRequest" else request.group_ids


@pytest.mark.parametrize("code", [UNKNOWN_SERVER_ERROR, None])
@pytest.mark.parametrize("request_", [DescribeGroupsRequest, StreamsGroupDescribeRequest])
def test_a_group_that_cannot_be_described_costs_no_other_group_its_answer(request_: Any, code: int | None) -> None:
    brokers = Brokers("g7", code)
    told = GroupRequests(brokers).describe(request_, NODES, SOON)
    assert {name for name, answer in told.items() if answer is Refused.FAILED} == {"g7"}
    assert {answer.group_id for answer in told.values() if answer is not Refused.FAILED} == NODES.keys() - {"g7"}
    # 115 groups a broker; then the 100 of the failed request, the 25, the 6, each in smaller parts.
    assert brokers.asked == [100, 15, 100, 15, *[25] * 4, 6, 6, 6, 6, 1, *[1] * 6]


class Manager:
    """The connection manager of kafka-python, whose brokers hang up when they are asked for "bad"."""

    async def send(self, request: Any, **_: object) -> Any:
        if "bad" in request.groups:
            raise KafkaConnectionError
        return request.groups

    def call_soon(self, ask: Any, node: int) -> Any:
        # In a thread, as kafka-python's loop is: the test's own may have the loop of a browser.
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(asyncio.run, ask(node))
        return SimpleNamespace(add_both=lambda done: done(None), exception=asked.exception())


def test_a_broker_that_hangs_up_at_one_request_answers_the_others() -> None:
    connections = Connections(SimpleNamespace(_manager=Manager()))
    work = [(node, SimpleNamespace(name="Some", groups=[name])) for node, name in ((1, "bad"), (1, "a"), (2, "b"))]
    assert connections.ask(work, Deadline.after(600), needs_all=False) == [None, ["a"], ["b"]]
    with pytest.raises(RoundAbandonedError, match="broker 1 did not answer Some"):
        connections.ask(work, Deadline.after(600))
    with pytest.raises(RoundAbandonedError, match="no answer came within"):
        connections.ask(work, Deadline.after(-1).at_most(-1), needs_all=False)


def test_a_coordinator_that_is_loading_still_abandons_the_round() -> None:
    with pytest.raises(RoundAbandonedError, match="CoordinatorLoadInProgressError"):
        GroupRequests(Brokers("g7", COORDINATOR_LOADING)).describe(DescribeGroupsRequest, NODES, SOON)


def observe(cluster: KafkaCluster, log: OffsetsLogView = LOG, memory: Memory | None = None) -> Any:
    positions = POSITIONS if log is LOG else LogPositions((), ())
    return cluster.observe_groups(log, positions, memory or Memory({"g": frozenset({"old"})}), 0, SOON)


def failing(groups: Mapping[str, int]) -> Mapping[str, object]:
    return dict.fromkeys(groups, Refused.FAILED)


def test_it_keeps_its_topics_and_its_state_and_says_so_once(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = make_cluster(Answers([[listed(2, "Stable")]] * 2, failing))
    with caplog.at_level(logging.WARNING):
        looks = [observe(cluster), observe(cluster)]
    for look in looks:
        assert look.groups == {"g": listed(2, "Stable")}
        assert look.topics_of_groups == {"g": ("old", "orders")}
    assert [record.getMessage() for record in caplog.records] == [
        "Brokers fail to describe group 'g': their logs say why."
    ]


def test_without_the_log_it_has_not_been_looked_at_and_is_not_taken_for_empty(
    make_cluster: MakeCluster, make_head: MakeHead
) -> None:
    look = observe(make_cluster(Answers([[listed(2, "Stable")]], failing), reads_log=False), HIDDEN)
    assert (look.seen["g"].looked, look.seen["g"].membership) == (False, None)
    [event] = events_of_admin_mode(make_head(), look)
    of_offsets = SeenCommits(whole=True, offsets={"orders": ((0, 1),)})
    assert (event.saw.state, event.saw.seen) == ("Stable", Seen(ADMIN, looked=False, commits=of_offsets))


def events_of_admin_mode(head: RoundHead, look: GroupsSeen) -> list[GroupEvent]:
    after = memory_after(head, look, Memory())
    return round_events(head, look, Memory(), after, Filters(), 1, seen_round(head, look, Memory(), after, 1))


def test_it_is_not_gone_while_a_coordinator_fails_that_does_not_list_it(make_cluster: MakeCluster) -> None:
    look = observe(make_cluster(Answers([[], []], failing)))
    assert (look.groups["g"].group, look.groups["g"].state) == ("g", None)


def test_offsets_that_a_coordinator_fails_to_tell_leave_the_group_its_topics(make_cluster: MakeCluster) -> None:
    answers = Answers([[listed(2)]], failing)
    answers.committed = lambda groups, _: failing(groups)  # type: ignore[method-assign]
    look = observe(make_cluster(answers))
    assert look.topics_of_groups == {"g": ("old",)}
    assert look.committed == {}

"""The interpretation of rare answers of brokers: a moving coordinator, a group by which one fails.

Kafka answers with the error for all groups of the request that are in the same partition of the offsets log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kafka.errors import KafkaConnectionError
from kafka.protocol.admin import DescribeGroupsRequest

from streaming.config import Filters
from streaming.events import GroupEvent
from streaming.probe import RoundAbandonedError
from streaming.probe.clients import Connections
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.cluster import KafkaCluster
from streaming.probe.kafka.followed import LogState
from streaming.probe.kafka.look import GroupsSeen, ListedGroup, RoundHead
from streaming.probe.kafka.memory import Memory, memory_after
from streaming.probe.kafka.messages import StreamsGroupDescribeRequest
from streaming.probe.kafka.observe import round_events, seen_round
from streaming.probe.kafka.requests import Refused, Requests
from streaming.probe.kafka.retention import AskedSettings
from streaming.records import (
    ADMIN,
    InternalTopics,
    Seen,
    SeenClassic,
    SeenCommits,
    SeenMember,
    SeenModern,
    SeenTasks,
    SeenTopology,
    TopicRetention,
)
from tests.probe.kafka.build import BEFORE, HIDDEN, SOON, Answers, MakeCluster, MakeHead, listed
from tests.probe.kafka.build import OFFSETS_LOG as LOG


def answered(groups: Mapping[str, int]) -> Mapping[str, object]:
    return dict.fromkeys(groups, Refused.UNKNOWN)


def test_a_group_that_its_active_coordinator_does_not_know_is_gone(make_cluster: MakeCluster) -> None:
    answers = Answers([[], []], answered)
    look = make_cluster(answers).observe_groups(LOG, BEFORE, SOON)
    assert look.groups == {}
    # "g".hashCode() is 103: partition 1 of 2, which broker 2 leads.
    assert answers.asked == [[1, 2], [2]]


def test_a_group_that_changes_coordinators_while_they_list_is_still_there(make_cluster: MakeCluster) -> None:
    look = make_cluster(Answers([[], [listed(2)]], answered)).observe_groups(LOG, BEFORE, SOON)
    assert look.groups == {"g": listed(2)}
    assert look.topics_of_groups == {"g": ("orders",)}


def test_a_coordinator_that_is_not_active_yet_abandons_the_round(make_cluster: MakeCluster) -> None:
    def not_active(_: Mapping[str, int]) -> Mapping[str, object]:
        raise RoundAbandonedError("the coordinator of group 'g' refused to describe it (NotCoordinatorError)")

    with pytest.raises(RoundAbandonedError):
        make_cluster(Answers([[]], not_active)).observe_groups(LOG, BEFORE, SOON)


def test_a_group_that_is_not_shown_any_more_is_kept_without_a_state(make_cluster: MakeCluster) -> None:
    def forbidden(groups: Mapping[str, int]) -> Mapping[str, object]:
        return dict.fromkeys(groups, Refused.FORBIDDEN)

    look = make_cluster(Answers([[], []], forbidden)).observe_groups(LOG, BEFORE, SOON)
    assert look.groups == {"g": ListedGroup("g", 2, None, None, None)}


def test_of_two_brokers_that_list_a_group_the_leader_counts(make_cluster: MakeCluster) -> None:
    for both in ([listed(1), listed(2)], [listed(2), listed(1)]):
        look = make_cluster(Answers([both], answered)).observe_groups(LOG, Memory(), SOON)
        assert look.groups == {"g": listed(2)}


def test_the_topics_of_a_share_group_are_those_that_its_members_subscribe_to(make_cluster: MakeCluster) -> None:
    share = ListedGroup("g", 2, "Stable", "share", "share")

    look = make_cluster(Answers([[share]], answered)).observe_groups(LOG, Memory(), SOON)

    assert look.topics_of_groups == {"g": ("orders",)}
    assert look.descriptions["g"].protocol_type == "share"


def test_an_ignored_group_is_not_looked_for(make_cluster: MakeCluster) -> None:
    answers = Answers([[]], answered)
    look = make_cluster(answers, Filters(ignore_groups=("g",))).observe_groups(LOG, BEFORE, SOON)
    assert (look.groups, answers.asked) == ({}, [[1, 2]])


class Described:
    """The used fields of a described group."""

    def __init__(self, state: str, *metadata: bytes, protocol_type: str = "consumer") -> None:
        self.group_state, self.protocol_type = state, protocol_type
        self.members = [type("Member", (), {"member_metadata": data})() for data in metadata]


@pytest.mark.parametrize(
    ("described", "topics"),
    [
        # version 0, one topic "new", null user data
        (Described("Stable", bytes.fromhex("0000 00000001 0003 6e6577 ffffffff")), ("new", "orders")),
        # bytes that are not a subscription may hide topics that were known
        (Described("Stable", b"\x00"), ("old", "orders")),
        (Described("PreparingRebalance", b""), ("old", "orders")),
        (Described("Stable", b"\x00", protocol_type="connect"), ("orders",)),
        # deleted after it was listed
        (Described("Dead"), ("orders",)),
    ],
)
def test_what_members_tell_becomes_topics(make_cluster: MakeCluster, described: Any, topics: tuple[str, ...]) -> None:
    answers = Answers([[listed(2, "Stable")]], lambda _: {"g": described})
    look = make_cluster(answers).observe_groups(LOG, Memory({"g": frozenset({"old"})}), SOON)
    assert look.topics_of_groups == {"g": topics}


def test_a_streams_group_has_all_topics_of_its_topology_internal_ones_too(make_cluster: MakeCluster) -> None:
    part = {
        "subtopology_id": "0",
        "source_topics": ["orders"],
        "repartition_source_topics": [SimpleNamespace(name="counted", partitions=0)],
        "repartition_sink_topics": [],
        "state_changelog_topics": [SimpleNamespace(name="store", partitions=0)],
    }
    topology = SimpleNamespace(epoch=0, subtopologies=[SimpleNamespace(**part)])
    described = SimpleNamespace(group_id="g", group_state="NotReady", topology=topology, members=[])
    group = ListedGroup("g", 2, "NotReady", "streams", "streams")
    answers = Answers([[group]], lambda groups: dict.fromkeys(groups, described))
    look = make_cluster(answers).observe_groups(LOG, Memory(), SOON)
    assert look.topics_of_groups == {"g": ("counted", "orders", "store")}
    assert look.descriptions["g"].state == "NotReady"


TOPIC_ID = UUID("00000000-0000-0001-0000-000000000002")
NAMED = {"member_id": "m", "member_epoch": 3, "client_id": "c", "client_host": "/10.0.0.1", "rack_id": "r1"}


def test_without_the_log_a_share_group_s_members_are_told_with_what_they_have(make_cluster: MakeCluster) -> None:
    has = SimpleNamespace(topic_partitions=[SimpleNamespace(topic_id=TOPIC_ID, partitions=[1, 0])])
    member = SimpleNamespace(**NAMED, subscribed_topic_names=["b", "a"], assignment=has)
    described = SimpleNamespace(
        group_state="Stable", group_epoch=3, assignment_epoch=3, assignor_name="simple", members=[member]
    )
    answers = Answers([[ListedGroup("g", 2, "Stable", "share", "share")]], answered)
    answers.describe = lambda _, groups, __: dict.fromkeys(groups, described)  # type: ignore[method-assign]
    cluster = make_cluster(answers, reads_log=False)
    look = cluster.observe_groups(HIDDEN, Memory(), SOON)
    owned = (("AAAAAAAAAAEAAAAAAAAAAg", (0, 1)),)
    told = SeenMember("m", 3, "c", "/10.0.0.1", None, "r1", ("a", "b"), None, owned, (), None)
    assert told_of(look) == SeenModern(3, 3, "simple", (told,))


def told_of(look: GroupsSeen) -> SeenClassic | SeenModern:
    membership = look.seen["g"].membership
    return membership.read()


def tasks(active: list[int], standby: list[int]) -> SimpleNamespace:
    return SimpleNamespace(
        active_tasks=[SimpleNamespace(subtopology_id="1", partitions=active)],
        standby_tasks=[SimpleNamespace(subtopology_id="1", partitions=standby)],
        warmup_tasks=[],
    )


def test_without_the_log_a_streams_group_is_told_with_its_topology_and_its_settings(make_cluster: MakeCluster) -> None:
    member = SimpleNamespace(
        **NAMED,
        instance_id="i",
        topology_epoch=7,
        process_id="p",
        user_endpoint=SimpleNamespace(host="h", port=80),
        client_tags=[SimpleNamespace(key="zone", value="z")],
        assignment=tasks([1, 0], [2]),
        target_assignment=tasks([0], []),
        is_classic=False,
    )
    part = SimpleNamespace(
        subtopology_id="1",
        source_topics=["orders"],
        repartition_source_topics=[SimpleNamespace(name="counted", partitions=4)],
        repartition_sink_topics=["out"],
        state_changelog_topics=[SimpleNamespace(name="store", partitions=0)],
    )
    described = SimpleNamespace(
        group_id="g",
        group_state="Reconciling",
        group_epoch=9,
        assignment_epoch=9,
        topology=SimpleNamespace(epoch=7, subtopologies=[part]),
        members=[member],
    )
    group = ListedGroup("g", 2, "Reconciling", "streams", "streams")
    answers = Answers([[group], [group]], lambda groups: dict.fromkeys(groups, described))
    cluster = make_cluster(answers, reads_log=False)
    look = cluster.observe_groups(HIDDEN, Memory(), SOON)
    of_member = SeenTasks("p", 7, (("1", (2,)),), (), (("1", ()),), (), {"zone": "z"}, ("h", 80))
    told = SeenMember(
        *("m", 3, "c", "/10.0.0.1", "i", "r1", (), None, (("1", (0, 1)),), (("1", (0,)),), False), of_member
    )
    subtopology, internal = ("1", ("orders",), (), ("counted",)), InternalTopics((("store", 0),), (4,), ("out",))
    topology = SeenTopology(7, True, (subtopology,), (internal,), {"num.standby.replicas": "1"})
    assert told_of(look) == SeenModern(9, 9, "", (told,), topology=topology)
    cluster.observe_groups(HIDDEN, Memory(), SOON)
    assert answers.settings_asked == [["g"], ["g"]], "they may have changed with the next target"


def test_with_the_log_nobody_is_asked_for_the_settings_of_streams_groups(make_cluster: MakeCluster) -> None:
    described = SimpleNamespace(group_id="g", group_state="Stable", topology=None, members=[])
    group = ListedGroup("g", 2, "Stable", "streams", "streams")
    answers = Answers([[group]], lambda groups: dict.fromkeys(groups, described))
    make_cluster(answers).observe_groups(LOG, Memory(), SOON)
    assert answers.settings_asked == []


class Settings(Answers):
    """Answers with one topic's settings, as long as there are any."""

    def __init__(self) -> None:
        super().__init__([[listed(2)]] * 3, answered)
        self.told: dict[str, object] = {"orders": TopicRetention(1, -1, deletes=True, append_time=False)}

    def retentions(self, *_: object) -> dict[str, object]:
        return self.told


def test_settings_that_a_broker_cannot_tell_for_a_while_stay_known(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    made = partial(AskedSettings, clock=lambda: clock[0])
    monkeypatch.setattr("streaming.probe.kafka.cluster.AskedSettings", made)
    answers = Settings()
    cluster = make_cluster(answers)
    kept = answers.told["orders"]
    found = []
    for now, told in ((0.0, {"orders": kept}), (700.0, {}), (1_400.0, {"orders": Refused.FORBIDDEN})):
        clock[0], answers.told = now, told
        found.append(cluster.observe_groups(LOG, BEFORE, SOON).topics["orders"].retention)
    assert found == [kept, kept, None]


UNKNOWN_SERVER_ERROR, COORDINATOR_LOADING = -1, 14
NODES = {f"g{number}": 1 + number % 2 for number in range(230)}


class Brokers(Requests):
    """Requests to brokers that fail by one group: in an answer for all that were asked with it, or without one."""

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
    told = brokers.describe(request_, NODES, SOON)
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
        Brokers("g7", COORDINATOR_LOADING).describe(DescribeGroupsRequest, NODES, SOON)


def observe(cluster: KafkaCluster, log: LogState = LOG, memory: Memory | None = None) -> Any:
    return cluster.observe_groups(log, memory or Memory({"g": frozenset({"old"})}), SOON)


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

"""The interpretation of rare answers of brokers: a moving coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from streaming.config import Filters
from streaming.probe import RoundAbandonedError
from streaming.probe.kafka.cluster import LogPositions
from streaming.probe.kafka.look import GroupsSeen, ListedGroup
from streaming.probe.kafka.memory import Memory
from streaming.probe.kafka.requests import Refused
from streaming.probe.kafka.retention import Retentions
from streaming.records import (
    SeenClassic,
    SeenMember,
    SeenModern,
    SeenSubtopology,
    SeenTasks,
    SeenTopology,
    TopicRetention,
)
from tests.probe.kafka.build import BEFORE, HIDDEN, POSITIONS, SOON, Answers, MakeCluster, listed
from tests.probe.kafka.build import OFFSETS_LOG as LOG


def answered(groups: Mapping[str, int]) -> Mapping[str, object]:
    return dict.fromkeys(groups, Refused.UNKNOWN)


def test_a_group_that_its_active_coordinator_does_not_know_is_gone(make_cluster: MakeCluster) -> None:
    answers = Answers([[], []], answered)
    look = make_cluster(answers).observe_groups(LOG, POSITIONS, BEFORE, 0, SOON)
    assert look.groups == {}
    # "g".hashCode() is 103: partition 1 of 2, which broker 2 leads.
    assert answers.asked == [[1, 2], [2]]


def test_a_group_that_changes_coordinators_while_they_list_is_still_there(make_cluster: MakeCluster) -> None:
    look = make_cluster(Answers([[], [listed(2)]], answered)).observe_groups(LOG, POSITIONS, BEFORE, 0, SOON)
    assert look.groups == {"g": listed(2)}
    assert look.topics_of_groups == {"g": ("orders",)}


def test_a_coordinator_that_is_not_active_yet_abandons_the_round(make_cluster: MakeCluster) -> None:
    def not_active(_: Mapping[str, int]) -> Mapping[str, object]:
        message = "the coordinator of group 'g' refused to describe it (NotCoordinatorError)"
        raise RoundAbandonedError(message)

    with pytest.raises(RoundAbandonedError):
        make_cluster(Answers([[]], not_active)).observe_groups(LOG, POSITIONS, BEFORE, 0, SOON)


def test_a_group_that_is_not_shown_any_more_is_kept_without_a_state(make_cluster: MakeCluster) -> None:
    def forbidden(groups: Mapping[str, int]) -> Mapping[str, object]:
        return dict.fromkeys(groups, Refused.FORBIDDEN)

    look = make_cluster(Answers([[], []], forbidden)).observe_groups(LOG, POSITIONS, BEFORE, 0, SOON)
    assert look.groups == {"g": ListedGroup("g", 2, None, None, None)}


def test_of_two_brokers_that_list_a_group_the_leader_counts(make_cluster: MakeCluster) -> None:
    for both in ([listed(1), listed(2)], [listed(2), listed(1)]):
        look = make_cluster(Answers([both], answered)).observe_groups(LOG, POSITIONS, Memory(), 0, SOON)
        assert look.groups == {"g": listed(2)}


def test_the_topics_of_a_share_group_are_those_that_its_members_subscribe_to(make_cluster: MakeCluster) -> None:
    share = ListedGroup("g", 2, "Stable", "share", "share")

    look = make_cluster(Answers([[share]], answered)).observe_groups(LOG, POSITIONS, Memory(), 0, SOON)

    assert look.topics_of_groups == {"g": ("orders",)}
    assert look.descriptions["g"].protocol_type == "share"


def test_an_ignored_group_is_not_looked_for(make_cluster: MakeCluster) -> None:
    answers = Answers([[]], answered)
    look = make_cluster(answers, Filters(ignore_groups=("g",))).observe_groups(LOG, POSITIONS, BEFORE, 0, SOON)
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
    look = make_cluster(answers).observe_groups(LOG, POSITIONS, Memory({"g": frozenset({"old"})}), 0, SOON)
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
    look = make_cluster(answers).observe_groups(LOG, POSITIONS, Memory(), 0, SOON)
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
    look = cluster.observe_groups(HIDDEN, LogPositions((), ()), Memory(), 0, SOON)
    owned = (("AAAAAAAAAAEAAAAAAAAAAg", (0, 1)),)
    told = SeenMember("m", 3, "c", "/10.0.0.1", None, "r1", ("a", "b"), None, owned, (), None)
    assert told_of(look) == SeenModern(3, 3, "simple", (told,))


def told_of(look: GroupsSeen) -> SeenClassic | SeenModern:
    membership = look.seen["g"].membership
    assert membership is not None
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
    look = cluster.observe_groups(HIDDEN, LogPositions((), ()), Memory(), 0, SOON)
    of_member = SeenTasks("p", 7, (("1", (2,)),), (), (("1", ()),), (), {"zone": "z"}, ("h", 80))
    told = SeenMember(
        *("m", 3, "c", "/10.0.0.1", "i", "r1", (), None, (("1", (0, 1)),), (("1", (0,)),), False), of_member
    )
    subtopology = SeenSubtopology("1", ("orders",), (("counted", 4),), (("store", 0),), ("out",))
    topology = SeenTopology(7, True, (subtopology,), {"num.standby.replicas": "1"})
    assert told_of(look) == SeenModern(9, 9, "", (told,), topology=topology)
    cluster.observe_groups(HIDDEN, LogPositions((), ()), Memory(), 0, SOON)
    assert answers.settings_asked == [["g"], ["g"]], "they may have changed with the next target"


def test_with_the_log_nobody_is_asked_for_the_settings_of_streams_groups(make_cluster: MakeCluster) -> None:
    described = SimpleNamespace(group_id="g", group_state="Stable", topology=None, members=[])
    group = ListedGroup("g", 2, "Stable", "streams", "streams")
    answers = Answers([[group]], lambda groups: dict.fromkeys(groups, described))
    make_cluster(answers).observe_groups(LOG, POSITIONS, Memory(), 0, SOON)
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
    monkeypatch.setattr("streaming.probe.kafka.cluster.Retentions", lambda period: Retentions(period, lambda: clock[0]))
    answers = Settings()
    cluster = make_cluster(answers)
    kept = answers.told["orders"]
    found = []
    for now, told in ((0.0, {"orders": kept}), (700.0, {}), (1_400.0, {"orders": Refused.FORBIDDEN})):
        clock[0], answers.told = now, told
        found.append(cluster.observe_groups(LOG, POSITIONS, BEFORE, 0, SOON).topics["orders"].retention)
    assert found == [kept, kept, None]

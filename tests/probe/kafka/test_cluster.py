"""The interpretation of rare answers of brokers: a moving coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from streaming.config import Filters
from streaming.probe import RoundAbandonedError
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.cluster import KafkaCluster, LogPositions, OffsetsLogView
from streaming.probe.kafka.look import ListedGroup
from streaming.probe.kafka.memory import Memory
from streaming.probe.kafka.requests import Metadata, Refused, TopicMetadata
from streaming.probe.kafka.retention import Retentions
from streaming.records import TopicRetention

LOG = OffsetsLogView((1, 2), Metadata("id", (1, 2), False, {}))
SOON = Deadline.after(600)
POSITIONS = LogPositions((0, 0), (0, 0))
BEFORE = Memory({"g": frozenset({"orders"})})

Describe = Callable[[Mapping[str, int]], Mapping[str, object]]
MakeCluster = Callable[..., KafkaCluster]


def listed(node: int, state: str = "Empty") -> ListedGroup:
    return ListedGroup("g", node, state, "consumer", "classic")


class Answers:
    """Requests with prepared answers; each ListGroups takes the next list."""

    def __init__(self, lists: list[list[ListedGroup]], describe: Describe) -> None:
        self._lists, self._describe = lists, describe
        self.asked: list[list[int]] = []

    def list_groups(self, brokers: Iterable[int], _: Deadline) -> list[ListedGroup]:
        self.asked.append(list(brokers))
        return self._lists.pop(0)

    def describe_groups(self, groups: Mapping[str, int], _: Deadline) -> Mapping[str, object]:
        return self._describe(groups) if groups else {}

    def describe_consumer_groups(self, *_: object) -> Mapping[str, object]:
        return {}

    def describe_share_groups(self, groups: Mapping[str, int], _: Deadline) -> Mapping[str, object]:
        member = SimpleNamespace(subscribed_topic_names=["orders"])
        return {group: SimpleNamespace(group_state="Stable", members=[member]) for group in groups}

    def describe_streams_groups(self, groups: Mapping[str, int], _: Deadline) -> Mapping[str, object]:
        return self._describe(groups) if groups else {}

    def committed(self, groups: Mapping[str, int], _: Deadline) -> Mapping[str, object]:
        return {group: {("orders", 0): 1} for group in groups}

    def metadata(self, topics: Iterable[str], _: Deadline) -> Metadata:
        return Metadata("id", (1, 2), False, {topic: TopicMetadata(None, (), ()) for topic in topics})

    def retentions(self, *_: object) -> dict[str, object]:
        return {}

    def share_settings(self, *_: object) -> dict[str, object]:
        return {}

    def share_offsets(self, *_: object) -> dict[str, object]:
        return {}

    def offsets(self, *_: object) -> dict[tuple[str, int], int]:
        return {}


@pytest.fixture
def make_cluster(monkeypatch: pytest.MonkeyPatch) -> MakeCluster:
    def make(answers: Answers, filters: Filters | None = None) -> KafkaCluster:
        monkeypatch.setattr("streaming.probe.kafka.cluster.Connections", lambda _: None)
        for kind in ("MetadataRequests", "GroupRequests", "PartitionRequests"):
            monkeypatch.setattr(f"streaming.probe.kafka.cluster.{kind}", lambda _: answers)
        return KafkaCluster(object(), "__consumer_offsets", filters or Filters())

    return make


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
        "source_topics": ["orders"],
        "repartition_source_topics": [SimpleNamespace(name="counted")],
        "state_changelog_topics": [SimpleNamespace(name="store")],
    }
    topology = SimpleNamespace(epoch=0, subtopologies=[SimpleNamespace(**part)])
    described = SimpleNamespace(group_state="NotReady", topology=topology, members=[])
    group = ListedGroup("g", 2, "NotReady", "streams", "streams")
    answers = Answers([[group]], lambda groups: dict.fromkeys(groups, described))
    look = make_cluster(answers).observe_groups(LOG, POSITIONS, Memory(), 0, SOON)
    assert look.topics_of_groups == {"g": ("counted", "orders", "store")}
    assert look.descriptions["g"].state == "NotReady"


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

"""Brokers: requests go to the right leader, who is up and who has gone, and what is not taken from an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.metadata import MetadataResponse

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.offsets_log import partition_for
from streaming.probe import Probe, RoundAbandonedError
from streaming.probe.clients import chunks_by_node
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.brokers import (
    GONE_MS,
    OUTDATED_ROUNDS,
    Host,
    brokers_after,
    is_outdated,
)
from streaming.probe.kafka.requests import Refused, Requests
from streaming.records import Broker, Brokers, RoundClosed
from tests.pair_of_brokers import Pair
from tests.patience import until
from tests.probe.witness import Cluster, read_round, requests_sent

GROUPS = 20
PREFERRED = 0  # election type on the wire (KIP-460)


@pytest.fixture
def cluster(pair: Pair, unique: str) -> Iterator[Cluster]:
    admin = KafkaAdminClient(bootstrap_servers=pair.first.bootstrap)
    yield Cluster(pair.first.bootstrap, unique, admin)
    admin.close()


@pytest.fixture
def pair_settings(pair: Pair, unique: str) -> Settings:
    return Settings(
        cluster=unique,
        kafka=KafkaSettings(bootstrap_servers=pair.bootstrap),
        probe=ProbeSettings(
            interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
        filters=Filters(groups=(f"/^{unique}/",)),
    )


@pytest.mark.nightly
@pytest.mark.kafka
@pytest.mark.xdist_group("pair")
@pytest.mark.turn(3)
def test_each_broker_is_asked_for_what_it_leads(cluster: Cluster, pair_settings: Settings) -> None:
    topic = f"{cluster.unique}-orders"
    cluster.admin.create_topics({topic: {"assignments": {0: [1, 2], 1: [2, 1], 2: [2, 1]}}}, wait_for_metadata=True)
    cluster.produce(topic, [3, 4, 5])
    groups = {cluster.commit(str(number), topic, [1, 1, 1]) for number in range(GROUPS)}
    with Probe(pair_settings) as probe, requests_sent() as sent:
        closed = probe.round()
    # Both brokers coordinate groups and lead partitions of both topics.
    # Any of them tells how long topics keep their records.
    each = {"Metadata": 2, "ListGroups": 2, "OffsetFetch": 2, "ListOffsets": 2 * 2 + 3 * 2}
    assert sent == each | {"DescribeConfigs": 1 + 2}
    round_ = read_round(pair_settings, closed)
    assert set(round_.groups) == groups
    assert len({partition_for(group, 8) for group in groups}) > 4
    for group in groups:
        seen = round_.topics(group)[topic]
        assert (seen.partitions, tuple(seen.ends), seen.racks) == (3, (3, 4, 5), (("a", "b"), ("b", "a"), ("b", "a")))


@pytest.mark.nightly
@pytest.mark.kafka
@pytest.mark.xdist_group("pair")
@pytest.mark.turn(3)
def test_a_broker_does_not_speak_for_groups_of_another(cluster: Cluster) -> None:
    topic = f"{cluster.unique}-orders"
    cluster.admin.create_topics({topic: {"assignments": {0: [1, 2]}}}, wait_for_metadata=True)
    group = cluster.commit("g", topic, [0])
    [log] = cluster.admin.describe_topics(["__consumer_offsets"])
    leader = next(p["leader_id"] for p in log["partitions"] if p["partition_index"] == partition_for(group, 8))
    requests = Requests(cluster.admin)
    assert requests.describe(DescribeGroupsRequest, {group: leader}, Deadline.after(30))[group] is not Refused.UNKNOWN
    # The check for gone groups relies on this error for groups that have only moved: see KafkaCluster._missed.
    for unknown in (group, f"{group}-not-there"):
        other = 3 - leader if unknown == group else _not_leading(log, unknown)
        with pytest.raises(RoundAbandonedError, match="NotCoordinatorError"):
            requests.describe(DescribeGroupsRequest, {unknown: other}, Deadline.after(30))


def _not_leading(log: dict[str, Any], group: str) -> int:
    [leader] = [p["leader_id"] for p in log["partitions"] if p["partition_index"] == partition_for(group, 8)]
    return 3 - int(leader)


@pytest.mark.kafka
@pytest.mark.xdist_group("pair")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_broker_that_dies_and_comes_back_makes_no_group_look_deleted(
    pair: Pair, cluster: Cluster, pair_settings: Settings
) -> None:
    topic = f"{cluster.unique}-orders"
    cluster.admin.create_topics({topic: {"assignments": {0: [1, 2], 1: [2, 1]}}}, wait_for_metadata=True)
    groups = {cluster.commit(str(number), topic, [0, 0]) for number in range(GROUPS)}
    rounds: list[RoundClosed] = []

    def close(wanted: int) -> None:
        deadline, goal = time.monotonic() + 90, len(rounds) + wanted
        while len(rounds) < goal:
            try:
                rounds.append(probe.round())
            except RoundAbandonedError:
                assert time.monotonic() < deadline

    with Probe(pair_settings) as probe:
        close(2)
        pair.second.kill()
        close(10)
        pair.second.start()
        # It returns as a follower; coordinators move to it while rounds continue.
        until(
            lambda: 2 in leaders_of_the_log(cluster),
            lambda: cluster.admin.elect_leaders(PREFERRED, raise_errors=False),
            lambda: close(1),
        )
        close(10)
    assert_brokers_are_told(rounds)
    for closed in rounds:
        round_ = read_round(pair_settings, closed)
        assert round_.gone == {}
        told = groups & set(round_.groups)
        assert len(told) + closed.untold == len(groups)
        assert all(round_.topics(group)[topic].partitions == 2 for group in told)


def assert_brokers_are_told(rounds: list[RoundClosed]) -> None:
    """The rounds tell that broker 2 was there, was gone, and came back, and who coordinated meanwhile."""
    told = [closed.brokers for closed in rounds if closed.brokers is not None]
    assert len(told) == len(rounds)
    assert [broker.node for broker in told[0].up] == [1, 2]
    assert {broker.rack for broker in told[0].up} == {"a", "b"}
    missed = next(place for place, brokers in enumerate(told) if brokers.gone)
    assert [(broker.node, broker.since) for broker in told[missed].gone] == [(2, rounds[missed].time)]
    back = next(place for place in range(missed, len(told)) if not told[place].gone)
    assert told[back].up[1].since == rounds[back].time


def leaders_of_the_log(cluster: Cluster) -> set[int]:
    [topic] = cluster.admin.describe_topics(["__consumer_offsets"])
    return {partition["leader_id"] for partition in topic["partitions"]}


START = 1_767_225_600_000
ROUND_MS = 10_000

HOSTS = {1: Host("kafka-1", "a"), 2: Host("kafka-2", "b"), 3: Host("kafka-3", None)}


class Seen:
    """Rounds every ten seconds."""

    def __init__(self) -> None:
        self.now: Brokers | None = None
        self.time = self.last = START

    def round(
        self, up: str, *coordinators: tuple[int, int], after_ms: int = ROUND_MS, outdated: int = 0, ahead_ms: int = 0
    ) -> Brokers:
        """A round that sees these brokers, and these leaders with their epochs, by a clock that may be ahead."""
        self.time += after_ms
        hosts = {int(node): HOSTS[int(node)] for node in up}
        time = self.time + ahead_ms
        self.now = brokers_after(self.now, hosts, coordinators, time, self.last, outdated)
        self.last = time
        return self.now


def test_brokers_of_the_first_round_have_no_beginning() -> None:
    found = Seen().round("12", (1, 4), (2, 7))
    assert found == Brokers((Broker(1, "kafka-1", "a"), Broker(2, "kafka-2", "b")), (), ((1, 4), (2, 7)))


def test_a_broker_is_gone_since_the_first_round_without_it_and_up_since_the_first_with_it_again() -> None:
    seen = Seen()
    seen.round("123")
    missed = seen.round("13")
    assert missed.gone == (Broker(2, "kafka-2", "b", since=START + 2 * ROUND_MS),)
    assert seen.round("13").gone == missed.gone
    back = seen.round("123")
    assert back.gone == ()
    assert back.up[1] == Broker(2, "kafka-2", "b", since=START + 4 * ROUND_MS)


def test_a_broker_that_was_taken_out_is_forgotten_after_a_day() -> None:
    seen = Seen()
    seen.round("12")
    seen.round("1")
    assert [broker.node for broker in seen.round("1", after_ms=GONE_MS - 1).gone] == [2]
    assert [broker.node for broker in seen.round("1", after_ms=1).gone] == [2]
    assert seen.round("1").gone == ()


@pytest.mark.parametrize("ahead_ms", [GONE_MS, -GONE_MS])
def test_a_clock_that_is_wrong_for_one_round_lets_nobody_forget_a_broker_that_is_gone_or_a_move(ahead_ms: int) -> None:
    seen = Seen()
    seen.round("123", (3, 7))
    known = seen.round("12", (1, 8))
    assert [broker.node for broker in known.gone] == [3]
    for wrong in (ahead_ms, 0, 0):
        assert seen.round("12", (1, 8), ahead_ms=wrong) == known


def test_a_broker_that_went_while_the_clock_was_ahead_is_gone_since_it_was_right_at_the_latest() -> None:
    seen = Seen()
    seen.round("123", (3, 7))
    seen.round("12", (1, 8), ahead_ms=60_000)
    assert [broker.node for broker in seen.round("12", (1, 8)).gone] == [3]
    right = seen.round("12", (1, 8))
    assert [(broker.node, broker.since) for broker in right.gone] == [(3, seen.time)]
    assert seen.round("12", (1, 8)).gone == right.gone


def test_a_broker_that_restarts_between_two_rounds_gives_no_evidence() -> None:
    seen = Seen()
    seen.round("12", (2, 7))
    found = seen.round("12", (2, 9))
    assert (found.gone, found.coordinators) == ((), ((2, 9),))


def test_an_answer_that_is_older_than_the_round_before_changes_nothing() -> None:
    seen = Seen()
    seen.round("12", (2, 7))
    known = seen.round("1", (1, 8))
    assert seen.round("12", (2, 7)) == known
    assert [broker.node for broker in seen.round("1", (1, 8)).gone] == [2]


def test_answers_that_stay_older_are_of_another_log() -> None:
    seen = Seen()
    known = seen.round("12", (2, 7))
    for outdated in range(OUTDATED_ROUNDS):
        assert is_outdated(seen.now, [(1, 0)])
        assert seen.round("1", (1, 0), outdated=outdated) == known
    anew = seen.round("1", (1, 0), outdated=OUTDATED_ROUNDS)
    assert anew == Brokers((Broker(1, "kafka-1", "a"),), (), ((1, 0),))
    assert not is_outdated(anew, [(1, 0)])


def test_without_leader_epochs_brokers_are_told() -> None:
    seen = Seen()
    seen.round("12")
    found = seen.round("1")
    assert [broker.node for broker in found.gone] == [2]


def test_a_hostile_broker_name_is_cut() -> None:
    (found,) = brokers_after(None, {1: Host("h" * 5_000, "r" * 5_000)}, (), START, -1).up
    assert (len(found.host), len(found.rack or "")) == (255, 255)


@pytest.mark.parametrize("topics", [[], ["__consumer_offsets"]])
def test_a_broker_that_knows_no_brokers_yet_abandons_the_round(
    monkeypatch: pytest.MonkeyPatch, topics: list[str]
) -> None:
    unknown = [
        MetadataResponse.MetadataResponseTopic(error_code=3, name=name, is_internal=False, partitions=[])
        for name in topics
    ]
    answer = MetadataResponse(brokers=[], cluster_id="id", controller_id=-1, topics=unknown)
    requests = Requests(SimpleNamespace(_manager=None))
    monkeypatch.setattr(requests, "ask", lambda *_: [answer])
    with pytest.raises(RoundAbandonedError, match="knows no brokers yet"):
        requests.metadata(topics, Deadline.after(10))


def test_requests_are_cut_per_broker() -> None:
    nodes = {"a": 1, "b": 2, "c": 1, "d": 1}
    assert list(chunks_by_node(nodes, 2)) == [(1, ["a", "c"]), (1, ["d"]), (2, ["b"])]

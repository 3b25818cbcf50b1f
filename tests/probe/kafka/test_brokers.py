"""Several brokers: requests go to the right leader, and a moving coordinator does not look like a deleted group."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.admin import DescribeGroupsRequest

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.offsets_log import partition_for
from streaming.probe import Probe, RoundAbandonedError
from streaming.probe.clients import Connections
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.requests import GroupRequests, Refused
from streaming.records import RoundClosed
from tests.pair_of_brokers import Pair
from tests.probe.witness import Cluster, read_round

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("pair"), pytest.mark.turn(3)]

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


def test_each_broker_is_asked_for_what_it_leads(cluster: Cluster, pair_settings: Settings) -> None:
    topic = f"{cluster.unique}-orders"
    cluster.admin.create_topics({topic: {"assignments": {0: [1, 2], 1: [2, 1], 2: [2, 1]}}}, wait_for_metadata=True)
    cluster.produce(topic, [3, 4, 5])
    groups = {cluster.commit(str(number), topic, [1, 1, 1]) for number in range(GROUPS)}
    with Probe(pair_settings) as probe:
        closed = probe.round()
        sent = probe.requests
    # Both brokers coordinate groups and lead partitions of both topics.
    # (Any of them tells how long topics keep their records.)
    each = {"Metadata": 2, "ListGroups": 2, "OffsetFetch": 2, "ListOffsets": 2 * 2 + 3 * 2}
    assert sent == each | {"DescribeConfigs": 1 + 2}
    round_ = read_round(pair_settings, closed)
    assert set(round_.groups) == groups
    assert len({partition_for(group, 8) for group in groups}) > 4
    for group in groups:
        seen = round_.topics(group)[topic]
        assert (seen.partitions, tuple(seen.ends), seen.racks) == (3, (3, 4, 5), (("a", "b"), ("b", "a"), ("b", "a")))


def test_a_broker_does_not_speak_for_groups_of_another(cluster: Cluster) -> None:
    topic = f"{cluster.unique}-orders"
    cluster.admin.create_topics({topic: {"assignments": {0: [1, 2]}}}, wait_for_metadata=True)
    group = cluster.commit("g", topic, [0])
    [log] = cluster.admin.describe_topics(["__consumer_offsets"])
    leader = next(p["leader_id"] for p in log["partitions"] if p["partition_index"] == partition_for(group, 8))
    requests = GroupRequests(Connections(cluster.admin))
    assert requests.describe(DescribeGroupsRequest, {group: leader}, Deadline.after(30))[group] is not Refused.UNKNOWN
    # The check for gone groups relies on this error for groups that have only moved: see KafkaCluster._missed.
    for unknown in (group, f"{group}-not-there"):
        other = 3 - leader if unknown == group else _not_leading(log, unknown)
        with pytest.raises(RoundAbandonedError, match="NotCoordinatorError"):
            requests.describe(DescribeGroupsRequest, {unknown: other}, Deadline.after(30))


def _not_leading(log: dict[str, Any], group: str) -> int:
    [leader] = [p["leader_id"] for p in log["partitions"] if p["partition_index"] == partition_for(group, 8)]
    return 3 - int(leader)


@pytest.mark.nightly
def test_a_broker_that_dies_and_comes_back_makes_no_group_look_deleted(
    pair: Pair, cluster: Cluster, pair_settings: Settings
) -> None:
    topic = f"{cluster.unique}-orders"
    cluster.admin.create_topics({topic: {"assignments": {0: [1, 2], 1: [2, 1]}}}, wait_for_metadata=True)
    groups = {cluster.commit(str(number), topic, [0, 0]) for number in range(GROUPS)}
    rounds: list[RoundClosed] = []

    def close(wanted: int) -> None:
        deadline, until = time.monotonic() + 90, len(rounds) + wanted
        while len(rounds) < until:
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
        deadline = time.monotonic() + 60
        while 2 not in leaders_of_the_log(cluster):
            cluster.admin.elect_leaders(PREFERRED, raise_errors=False)
            close(1)
            assert time.monotonic() < deadline
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

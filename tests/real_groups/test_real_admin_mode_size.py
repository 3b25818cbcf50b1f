"""A thousand groups with members on two brokers: what a round asks, and that a broker's death says nothing false."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient

from streaming.config import KafkaSettings
from streaming.probe import RoundAbandonedError
from streaming.probe.clients import open_admin
from streaming.probe.kafka.requests import GROUPS_PER_REQUEST
from tests.conftest import Tell
from tests.pair_of_brokers import Pair, pair_of_brokers
from tests.probe.witness import Cluster
from tests.real_groups.both_modes import BothModes
from tests.real_groups.followed import until
from tests.real_groups.raw_members import RawMembers

pytestmark = [pytest.mark.kafka, pytest.mark.soak, pytest.mark.timeout(1200), pytest.mark.turn(2)]

GROUPS, PARTITIONS = 1_000, 10
PREFERRED = 0  # election type on the wire (KIP-460)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    shared = {
        "offsets.topic.num.partitions": "8",
        "default.replication.factor": "2",
        "group.initial.rebalance.delay.ms": "0",  # members join one after the other
    }
    with pair_of_brokers(tmp_path_factory, shared) as running:
        yield running


def test_a_thousand_groups_with_members_on_two_brokers_look_the_same_in_both_modes_through_a_brokers_death(
    pair: Pair, unique: str, tell: Tell
) -> None:
    topic = f"{unique}-orders"
    groups = [f"{unique}-{number:04}" for number in range(GROUPS)]
    admin = open_admin(KafkaSettings(bootstrap_servers=pair.bootstrap))
    cluster = Cluster(pair.bootstrap, unique, KafkaAdminClient(bootstrap_servers=pair.bootstrap))
    replicas = {"assignments": {number: [1, 2] if number % 2 else [2, 1] for number in range(PARTITIONS)}}
    cluster.admin.create_topics({topic: replicas}, wait_for_metadata=True)
    cluster.produce(topic, [3] * PARTITIONS)
    cluster.commit("idle", topic, [1] * PARTITIONS)  # (creates the offsets log)
    members = RawMembers(admin, groups, topic, PARTITIONS)
    members.join()
    members.commit(1)
    every = [*groups, f"{unique}-idle"]

    with BothModes(pair.bootstrap, unique) as modes:

        def differing() -> dict[str, Any]:
            found = {group: modes.differing(group, decided=False) for group in every}
            return {group: of for group, of in found.items() if of}

        def both() -> None:
            modes.round()
            modes.round()

        both()
        assert differing() == {}
        tell(json.dumps({"round_s": _seconds(modes, 5), "requests": _asked(modes)}))
        batches = Counter(members.coordinators().values())
        described = sum(math.ceil(count / GROUPS_PER_REQUEST) for count in batches.values())
        idle_too = described + len(batches)  # the group without members may need one more at its coordinator
        asked = _asked(modes)
        assert set(batches) == {1, 2}
        assert asked["ListGroups"] == 2
        assert asked["DescribeGroups"] <= described + 1
        assert asked["OffsetFetch"] <= idle_too
        assert asked["Metadata"] == 2
        assert asked["ListOffsets"] <= 2 * 4
        assert "Fetch" not in asked
        for _ in range(7):  # (as many rounds: the probe looks for the time of old records in several)
            modes.log.round()

        members.commit(2)
        both()
        assert differing() == {}
        assert {row.committed_offset for row in modes.admin.lag(groups[7]).values()} == {2}

        pair.second.kill()
        _rounds(modes, 5)
        pair.second.start()
        _back(cluster, modes)
        members.commit(3)
        both()
        # Each mode looks for the time of old records in rounds of its own, and may have given some up meanwhile.
        until(lambda: differing() == {}, both)
        for group in every:
            health = modes.admin.health(group)
            assert (health.state, health.findings) == ("Empty" if group == f"{unique}-idle" else "Stable", ())
            assert [row.kind for row in modes.admin.churn(group)] in ([], ["rebalance"])
            # Lag of each partition was known, or unknown with a reason; never another group's.
            assert {row.committed_offset for row in modes.admin.lag(group).values()} <= {1, 3}
    admin.close()
    cluster.admin.close()


def _rounds(modes: BothModes, wanted: int) -> None:
    """Close so many rounds of each mode, however many are given up on the way."""
    for followed in (modes.log, modes.admin):
        closed = 0

        def round_closed(followed: Any = followed) -> bool:
            try:
                followed.round()
            except RoundAbandonedError:
                return False
            return True

        while closed < wanted:
            until(round_closed)
            closed += 1


def _back(cluster: Cluster, modes: BothModes) -> None:
    """Wait until the second broker coordinates groups again, with rounds meanwhile."""

    def leads() -> bool:
        cluster.admin.elect_leaders(PREFERRED, raise_errors=False)
        [log] = cluster.admin.describe_topics(["__consumer_offsets"])
        return 2 in {partition["leader_id"] for partition in log["partitions"]}

    until(leads, lambda: _rounds(modes, 1))


def _asked(modes: BothModes) -> Counter[str]:
    """What a round of admin mode sends, by the request's name."""
    before = Counter(modes.admin.probe.requests)
    modes.admin.round()
    return Counter(modes.admin.probe.requests) - before


def _seconds(modes: BothModes, rounds: int) -> list[float]:
    """How long rounds of admin mode take, without the core."""
    taken = []
    for _ in range(rounds):
        before = time.perf_counter()
        modes.admin.probe.round()
        taken.append(round(time.perf_counter() - before, 2))
    return taken

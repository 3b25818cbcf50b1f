"""The number of requests per round, and their batching per broker."""

from __future__ import annotations

import math

import pytest
from kafka import TopicPartition
from kafka.errors import NoError
from kafka.structs import OffsetAndMetadata

from streaming.config import Settings
from streaming.probe import Probe
from streaming.probe.clients import chunks_by_node
from streaming.probe.kafka.requests import GROUPS_PER_REQUEST
from tests.probe.witness import Cluster, read_round

GROUPS = 1_000


@pytest.mark.nightly
@pytest.mark.kafka
def test_a_round_over_a_thousand_groups_takes_a_bounded_number_of_requests(
    cluster: Cluster, settings: Settings
) -> None:
    orders = cluster.topic("orders", 10)
    cluster.produce(orders, [1] * 10)
    commits = {TopicPartition(orders, partition): OffsetAndMetadata(1, "", -1) for partition in range(10)}
    for number in range(GROUPS):
        answers = cluster.admin.alter_group_offsets(f"{cluster.unique}-{number}", commits, group_coordinator_id=1)
        assert set(answers.values()) == {NoError}
    with Probe(settings) as probe:
        closed = probe.round()
        sent = probe.requests
    batches = math.ceil(GROUPS / GROUPS_PER_REQUEST)
    # The formula in the package's docstring, for one broker. No group has members, so none is described.
    assert sent == {"Metadata": 2, "ListOffsets": 2 + 3, "ListGroups": 1, "OffsetFetch": batches, "DescribeConfigs": 2}
    assert sum(sent.values()) == 20
    round_ = read_round(settings, closed)
    assert len(round_.groups) == GROUPS
    assert closed.written == GROUPS
    topic = round_.topics(f"{cluster.unique}-7")[orders]
    assert (topic.partitions, list(topic.ends)) == (10, [1] * 10)


def test_requests_are_cut_per_broker() -> None:
    nodes = {"a": 1, "b": 2, "c": 1, "d": 1}
    assert list(chunks_by_node(nodes, 2)) == [(1, ["a", "c"]), (1, ["d"]), (2, ["b"])]

"""What is not taken from an answer about topics and brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataResponse

from streaming.probe.clients import chunks_by_node
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError
from streaming.probe.kafka.requests import MetadataRequests


@pytest.mark.parametrize("topics", [[], ["__consumer_offsets"]])
def test_a_broker_that_knows_no_brokers_yet_abandons_the_round(topics: list[str]) -> None:
    unknown = [
        MetadataResponse.MetadataResponseTopic(error_code=3, name=name, is_internal=False, partitions=[])
        for name in topics
    ]
    answer = MetadataResponse(brokers=[], cluster_id="id", controller_id=-1, topics=unknown)
    connections: Any = SimpleNamespace(ask=lambda _, __: [answer])

    with pytest.raises(RoundAbandonedError, match="knows no brokers yet"):
        MetadataRequests(connections).metadata(topics, Deadline.after(10))


def test_requests_are_cut_per_broker() -> None:
    nodes = {"a": 1, "b": 2, "c": 1, "d": 1}
    assert list(chunks_by_node(nodes, 2)) == [(1, ["a", "c"]), (1, ["d"]), (2, ["b"])]

"""The number of requests per round, and their batching per broker."""

from __future__ import annotations

from streaming.probe.clients import chunks_by_node


def test_requests_are_cut_per_broker() -> None:
    nodes = {"a": 1, "b": 2, "c": 1, "d": 1}
    assert list(chunks_by_node(nodes, 2)) == [(1, ["a", "c"]), (1, ["d"]), (2, ["b"])]

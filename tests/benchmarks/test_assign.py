from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.benchmarks.assign import NEWCOMER, Size, _brokers, _clients, checksum, compared


@pytest.mark.nightly
@pytest.mark.java
def test_ours_is_timed_on_the_group_on_which_java_is_timed() -> None:
    said: list[str] = []

    clients = _clients(
        Size("cooperative-sticky", "CooperativeStickyAssignor", 5, 4, 6, 2, java_limit=True), said.append
    )
    brokers = _brokers(Size("server-uniform", "UniformAssignor", 5, 4, 6, 2), said.append)

    assert [figure.name for figure in clients] == [
        "cooperative-sticky, 5 members x 24 partitions, different subscriptions",
        "  one member joins",
    ]
    assert [figure.name for figure in brokers] == [
        "server-uniform, 5 members x 24 partitions, different subscriptions",
        "  one member joins",
    ]
    assert all(figure.note.startswith("Java ") and figure.note.endswith(" x") for figure in (*clients, *brokers))


def test_a_figure_whose_result_is_not_javas_is_refused() -> None:
    with pytest.raises(RuntimeError, match="range: Java computed something else"):
        compared("range", 1.0, "", 7, (2.0, 8))


def test_the_checksum_counts_members_from_one_topics_and_partitions() -> None:
    result: dict[str, dict[str, Collection[int]]] = {"member1": {"t2": [0, 3]}, NEWCOMER: {"t0": range(1)}}

    # Two members in total: the newcomer counts as number 2, and so does member1.
    assert checksum(result, lambda topic: int(topic[1:])) == 2 * (2_000_007 + 2_000_010) + 2 * 1

"""The cost of numbers from outside: work is counted in units that depend only on the input, and a limit holds."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from itertools import chain, permutations, product
from pathlib import Path
from random import Random

import pytest

from assignors import (
    Group,
    Subscription,
    TooMuchWork,
    assign,
    at_most,
    imbalance_optimal,
    optimal_moves,
    spend,
)
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server, member_orders

_PLENTY = 10**12


def drawn(members: int, topics: int, of_each: int, *, partitions: int = 10, seed: int = 1) -> Group:
    """Members with random subscriptions; up to twice `partitions` per topic."""
    random = Random(seed)
    names = [f"t{number:04d}" for number in range(topics)]
    subscribed = [tuple(sorted(random.sample(names, of_each))) for _ in range(members)]
    return Group(
        tuple(Subscription(f"m{place:04d}", listed) for place, listed in enumerate(subscribed)),
        {name: random.randint(1, 2 * partitions) for name in names},
    )


def test_beyond_a_limit_a_computation_says_what_it_would_have_passed() -> None:
    with at_most(100, "one decision"), pytest.raises(TooMuchWork) as raised:
        assign("range", Group((Subscription("a", ("t",)),), {"t": 1_000}))
    assert raised.value.reason == "it takes more than the 100 units of work allowed for one decision"


def test_what_is_spent_within_counts_around_it_too() -> None:
    with at_most(10, "all") as every, at_most(100, "each") as one:
        spend(7)
        with pytest.raises(TooMuchWork, match="10 units of work allowed for all"):
            spend(7)
    assert (every.spent, one.spent) == (7, 7)


def test_after_a_limit_nothing_is_counted() -> None:
    with at_most(1):
        pass
    spend(_PLENTY)


@pytest.mark.parametrize("library", ["java", "java:3.0", "java:2.8.1", "java:2.4.0", "kafka-python:3.0.12"])
def test_a_sticky_leader_of_partitions_that_are_not_there_is_refused_before_memory_is_taken(library: str) -> None:
    group = Group(tuple(Subscription(name, ("t",)) for name in "abc"), {"t": 1_300_000})
    tracemalloc.start()
    try:
        with at_most(200_000), pytest.raises(TooMuchWork):
            assign("sticky", group, library)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


_COUNTED = """
from assignors import assign, at_most, imbalance_optimal, optimal_moves
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server
from tests.assignors.test_work import drawn, on_server
group = drawn(30, 40, 15)
had = assign("range", group)
with at_most(10**12) as work:
    imbalance_optimal(group)
    optimal_moves(had, group)
    for library in ("java", "java:3.0", "java:2.8.1", "java:2.4.0"):
        assign("sticky", group, library)
    assign("roundrobin", group, "sarama")
    for release in ("4.0.0", "4.0.1"):
        try:
            assign_on_server("server-uniform", on_server(group), release)
        except Exception as error:
            print(type(error).__name__)
print(work.spent)
"""


def on_server(group: Group) -> ServerGroup:
    """The same group in a broker's form."""
    topics = {
        name: ServerTopic(f"{place:021d}A", count)
        for place, (name, count) in enumerate(group.partitions_per_topic.items())
    }
    return ServerGroup(tuple(ServerMember(m.member_id, m.topics) for m in group.members), topics)


@pytest.mark.nightly
def test_work_does_not_depend_on_the_process_s_hash_seed() -> None:
    counted = {
        subprocess.run(
            [sys.executable, "-c", _COUNTED],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path.cwd())},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(counted) == 1
    assert int(counted.pop().split()[-1]) > 10_000


def test_the_least_imbalance_is_not_known_where_it_would_take_a_million_steps() -> None:
    group = drawn(1_000, 1_000, 500)
    with at_most(_PLENTY) as work:
        assert imbalance_optimal(group) is None
    assert work.spent <= 1_000_000


def test_the_least_imbalance_and_the_least_moves_are_not_known_beyond_a_limit() -> None:
    group = drawn(30, 40, 15)
    had = assign("range", group)
    assert imbalance_optimal(group) is not None
    assert optimal_moves(had, group) is not None
    with at_most(500):
        assert imbalance_optimal(group) is None
        assert optimal_moves(had, group) is None


def test_the_least_moves_of_many_topics_and_members_take_no_matrix_of_them() -> None:
    topics = tuple(f"t{number}" for number in range(5_000))
    members = tuple(Subscription(f"m{place}", topics[place : place + 2]) for place in range(4_990))
    group = Group(members, dict.fromkeys(topics, 1))
    tracemalloc.start()
    try:
        assert optimal_moves({"m0": {"t0": (0,)}}, group) is None
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_every_order_of_members_comes_once_and_the_last_bucket_turns_first() -> None:
    ids = ["AaAa", "BBBB", "AaBB", "c", "xAa", "xBB"]
    orders = member_orders(ids, 100)
    buckets: dict[int, list[str]] = {}
    for name in orders[0]:
        buckets.setdefault({"A": 0, "B": 0, "x": 1, "c": 2}[name[0]], []).append(name)
    assert orders == [list(chain.from_iterable(order)) for order in product(*map(permutations, buckets.values()))]
    assert len(orders) == 12
    assert member_orders(ids, 5) == orders[:5]


def test_a_broker_s_assignor_stops_at_a_limit() -> None:
    group = on_server(drawn(50, 40, 20))
    assert assign_on_server("server-uniform", group)
    with at_most(1_000), pytest.raises(TooMuchWork):
        assign_on_server("server-uniform", group)

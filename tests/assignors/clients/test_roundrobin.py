"""`roundrobin` by hand: expected values follow the class named in the test."""

from __future__ import annotations

import pytest

from assignors import CannotTell, Group, LeaderWouldFail, Subscription, assign, from_pairs, same


def test_the_deal_goes_on_from_topic_to_topic() -> None:
    # The example of RoundRobinAssignor's own documentation.
    group = Group((Subscription("C0", ("t0", "t1")), Subscription("C1", ("t0", "t1"))), {"t0": 3, "t1": 3})

    result = assign("roundrobin", group)

    assert same(
        result,
        from_pairs({"C0": [("t0", 0), ("t0", 2), ("t1", 1)], "C1": [("t0", 1), ("t1", 0), ("t1", 2)]}),
    )


def test_members_without_the_topic_are_passed_over() -> None:
    # The second example of that documentation.
    group = Group(
        (Subscription("C0", ("t0",)), Subscription("C1", ("t0", "t1")), Subscription("C2", ("t0", "t1", "t2"))),
        {"t0": 1, "t1": 2, "t2": 3},
    )

    result = assign("roundrobin", group)

    assert same(
        result,
        from_pairs({"C0": [("t0", 0)], "C1": [("t1", 0)], "C2": [("t1", 1), ("t2", 0), ("t2", 1), ("t2", 2)]}),
    )


def test_a_topic_without_metadata_takes_no_turn() -> None:
    group = Group((Subscription("a", ("gone", "t")), Subscription("b", ("gone", "t"))), {"t": 2})

    assert assign("roundrobin", group) == {"a": {"t": range(0, 2, 2)}, "b": {"t": range(1, 2, 2)}}


def test_kafka_python_fails_where_a_member_must_be_passed_over() -> None:
    group = Group((Subscription("a", ("t",)), Subscription("b", ("u",))), {"t": 2, "u": 1})

    with pytest.raises(LeaderWouldFail, match="KeyError"):
        assign("roundrobin", group, "kafka-python:3.0.12")
    for before in ("kafka-python:2.2.15", "kafka-python:1.0"):
        assert assign("roundrobin", group, before) == {"a": {"t": range(2)}, "b": {"u": range(1)}}


def test_kafka_python_may_differ_in_subscriptions_that_no_turn_meets() -> None:
    # Partition 0 of t falls to a, and u's only one to b: no member is skipped.
    group = Group((Subscription("a", ("t",)), Subscription("b", ("t", "u"))), {"t": 1, "u": 1})

    assert assign("roundrobin", group, "kafka-python:3.0.12") == {"a": {"t": range(1)}, "b": {"u": range(1)}}


def test_sarama_deals_partition_10_before_partition_2() -> None:
    group = Group((Subscription("a", ("t",)), Subscription("b", ("t",))), {"t": 11})

    result = assign("roundrobin", group, "sarama:1.60.1")

    # t-0, t-1, t-10, t-2, ... in turn.
    assert {m: sorted(t["t"]) for m, t in result.items()} == {"a": [0, 3, 5, 7, 9, 10], "b": [1, 2, 4, 6, 8]}


def test_sarama_does_not_look_at_instance_ids() -> None:
    group = Group((Subscription("a", ("t",)), Subscription("b", ("t",), group_instance_id="0")), {"t": 1})

    assert assign("roundrobin", group, "sarama:1.60.1")["a"] == {"t": (0,)}
    assert assign("roundrobin", group, "java:3.7.1")["a"] == {}


def test_librdkafka_before_1_5_is_told_for_equal_subscriptions_only() -> None:
    alike = Group((Subscription("a", ("t",)), Subscription("b", ("t",))), {"t": 2})
    different = Group((Subscription("a", ("t",)), Subscription("b", ())), {"t": 2})

    assert assign("roundrobin", alike, "librdkafka:1.4.4")["b"] == {"t": range(1, 2, 2)}
    with pytest.raises(CannotTell):
        assign("roundrobin", different, "librdkafka:1.4.4")
    for later in ("librdkafka:1.5.0", "librdkafka:1.5.2"):
        assert assign("roundrobin", different, later)["a"] == {"t": (0, 1)}
    assert assign("roundrobin", different, "librdkafka:1.5.3")["a"] == {"t": range(2)}


def test_librdkafka_1_5_2_wraps_at_the_number_of_a_topic_s_subscribers() -> None:
    # confluentinc/librdkafka#3159, by hand: next = (-1+1)%2 = 0, m1; then 1, m2 without the topic; (1+1)%2 = 0, m1.
    group = Group((Subscription("m1", ("A",)), Subscription("m2", ("B",)), Subscription("m3", ("A",))), {"A": 4})

    assert assign("roundrobin", group, "librdkafka:1.5.2") == {"m1": {"A": (0, 1, 2, 3)}, "m2": {}, "m3": {}}
    with pytest.raises(CannotTell, match="aborts"):
        assign("roundrobin", group, "librdkafka:1.5.0")
    assert assign("roundrobin", group, "librdkafka:1.5.3")["m3"] == {"A": range(1, 4, 2)}


def test_librdkafka_1_5_2_searches_without_end_where_no_first_member_subscribes() -> None:
    group = Group((Subscription("m1", ("B",)), Subscription("m2", ("A",))), {"A": 1})

    with pytest.raises(LeaderWouldFail):
        assign("roundrobin", group, "librdkafka:1.5.2")


def test_racks_never_matter() -> None:
    group = Group((Subscription("a", ("t",), rack="r1"), Subscription("b", ("t",), rack="r2")), {"t": 2})

    for library in ("java:4.3.1", "librdkafka:2.16", "franz-go"):
        assert assign("roundrobin", group, library)["a"] == {"t": range(0, 2, 2)}

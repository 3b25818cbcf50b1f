"""Clients with algorithms of their own, by hand from their sources."""

from __future__ import annotations

import pytest

from assignors import CannotTell, Group, Subscription, assign

ALIKE = (Subscription("b", ("t", "u")), Subscription("a", ("t", "u")))


def test_kafka_go_s_range_cuts_by_multiplication() -> None:
    # 5 partitions on 2 members: 0*5/2 = 0 to 1*5/2 = 2, then 2 to 5.
    assert assign("range", Group(ALIKE, {"t": 5}), "kafka-go") == {"b": {"t": range(2, 5)}, "a": {"t": range(2)}}


def test_kafka_go_s_roundrobin_begins_each_topic_with_its_first_subscriber() -> None:
    result = assign("roundrobin", Group(ALIKE, {"t": 1, "u": 1}), "kafka-go")

    assert result == {"b": {}, "a": {"t": range(1), "u": range(1)}}


def test_a_topic_listed_twice_counts_twice_in_kafka_go() -> None:
    group = Group((Subscription("a", ("t", "t")), Subscription("b", ("t",))), {"t": 6})

    assert assign("range", group, "kafka-go")["a"] == {"t": (0, 1, 2, 3)}
    assert assign("roundrobin", group, "kafka-go")["a"] == {"t": (0, 3, 1, 4)}


def test_sarama_cluster_s_range_rounds_the_bounds() -> None:
    # floor(1 * 1.5 + 0.5) = 2: of 3 partitions the first member gets 2, the second 1.
    assert assign("range", Group(ALIKE, {"t": 3}), "sarama-cluster")["a"] == {"t": range(2)}
    four = tuple(Subscription(member_id, ("t",)) for member_id in "abcd")
    # Bounds 2.25, 4.5, 6.75 become 2, 5, 7.
    sizes = [len(topics["t"]) for topics in assign("range", Group(four, {"t": 9}), "sarama-cluster").values()]
    assert sizes == [2, 3, 2, 2]


def test_old_sarama_takes_members_in_the_order_of_a_hash() -> None:
    # FNV-1a of "ta" is 0x41387aa9, of "tb" 0x40387916: b comes first.
    group = Group(ALIKE, {"t": 3})

    assert assign("range", group, "sarama:1.27")["b"] == {"t": range(2)}
    assert assign("roundrobin", group, "sarama:1.27")["b"] == {"t": range(0, 3, 2)}
    assert assign("range", group, "sarama:1.34.1")["a"] == {"t": range(2)}


def test_a_kafkajs_leader_deals_its_own_topics_to_all_members() -> None:
    members = (Subscription("b", ("u",)), Subscription("a", ("u", "t")))
    counts = {"t": 2, "u": 3}

    assert assign("RoundRobinAssigner", Group(members, counts, leader="a"), "kafkajs") == {
        "b": {"u": range(1, 3, 2), "t": range(0, 2, 2)},
        "a": {"u": range(0, 3, 2), "t": range(1, 2, 2)},
    }
    assert assign("RoundRobinAssigner", Group(members, counts, leader="b"), "kafkajs") == {
        "b": {"u": range(1, 3, 2)},
        "a": {"u": range(0, 3, 2)},
    }


def test_kafkajs_before_1_13_begins_each_topic_with_the_first_member() -> None:
    group = Group(ALIKE, {"t": 1, "u": 1}, leader="a")

    assert assign("RoundRobinAssigner", group, "kafkajs:1.12")["a"] == {"t": range(1), "u": range(1)}
    assert assign("RoundRobinAssigner", group, "kafkajs:1.13")["b"] == {"u": range(1)}


def test_platformatic_keeps_the_order_of_the_response_and_of_the_leader_s_topics() -> None:
    group = Group((Subscription("b", ("t",)), Subscription("a", ("u", "t"))), {"t": 1, "u": 2}, leader="a")

    assert assign("roundrobin", group, "@platformatic/kafka") == {
        "b": {"u": range(0, 2, 2), "t": range(1)},
        "a": {"u": range(1, 2, 2)},
    }


@pytest.mark.parametrize(
    ("strategy", "library"),
    [("RoundRobinAssigner", "kafkajs"), ("roundrobin", "@platformatic/kafka"), ("range", "kafka-php")],
)
def test_a_library_that_deals_the_leader_s_topics_cannot_be_told_without_the_leader(
    strategy: str, library: str
) -> None:
    with pytest.raises(CannotTell, match="which member led"):
        assign(strategy, Group(ALIKE, {"t": 1}), library)


def test_kafka_php_deals_in_turn_under_the_name_range() -> None:
    group = Group((Subscription("b", ("t",)), Subscription("a", ("t",))), {"t": 3}, leader="a")

    assert assign("range", group, "kafka-php") == {"b": {"t": range(0, 3, 2)}, "a": {"t": range(1, 3, 2)}}


@pytest.mark.parametrize(("strategy", "library"), [("range", "kafka-php"), ("roundrobin", "kafka-node")])
def test_topics_in_the_broker_s_order_leave_as_many_results_as_there_are_orders(strategy: str, library: str) -> None:
    members = (Subscription("a", ("t", "u")), Subscription("b", ("t", "u")))

    with pytest.raises(CannotTell) as caught:
        assign(strategy, Group(members, {"t": 1, "u": 2}, leader="a"), library)

    assert list(caught.value.possible) == [
        {"a": {"t": range(1), "u": range(1, 2, 2)}, "b": {"u": range(0, 2, 2)}},
        {"a": {"t": range(1), "u": range(0, 2, 2)}, "b": {"u": range(1, 2, 2)}},
    ]


def test_krafka_s_cooperative_sticky_moves_the_first_partition_and_holds_it_back() -> None:
    # Sizes 3 and 0: p0 moves, sizes 2 and 1 differ by one; p0 is still a's.
    members = (Subscription("a", ("t",), owned=(("t", (0, 1, 2)),), generation=1), Subscription("b", ("t",)))

    assert assign("cooperative-sticky", Group(members, {"t": 3}), "krafka") == {"a": {"t": (1, 2)}, "b": {}}


def test_krafka_believes_the_highest_generation_and_then_the_first_member() -> None:
    def claims(member_id: str, generation: int) -> Subscription:
        return Subscription(member_id, ("t",), owned=(("t", (0,)),), generation=generation)

    old_first = Group((claims("a", 1), claims("b", 2)), {"t": 1})
    both = Group((claims("b", 2), claims("a", 2)), {"t": 1})

    assert assign("cooperative-sticky", old_first, "krafka") == {"a": {}, "b": {"t": (0,)}}
    assert assign("cooperative-sticky", both, "krafka") == {"b": {"t": (0,)}, "a": {}}


def test_krafka_does_not_sort_its_members() -> None:
    group = Group(ALIKE, {"t": 3})

    assert assign("range", group, "krafka")["b"] == {"t": range(2)}
    assert assign("roundrobin", group, "krafka")["b"] == {"t": range(0, 3, 2)}

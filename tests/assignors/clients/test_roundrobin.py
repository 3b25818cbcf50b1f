"""`roundrobin` and `RoundRobinAssigner` by hand: expected values follow the class named in the case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignors import CannotTell, Group, assign
from tests.assignors.clients.by_hand import Case, check, each, member

A, B = member("a"), member("b")
ALIKE = member("b", "t u"), member("a", "t u")
PYTHON, KAFKAJS = "kafka-python:3.0.12", "RoundRobinAssigner"
M1, M2, M3 = member("m1", "A"), member("m2", "B"), member("m3", "A")
EACH_ONE = {"a": {"t": (0,)}, "b": {"t": (1,)}}
LEADERS = member("b", "u"), member("a", "u t")

DEALT = {
    # The two examples of RoundRobinAssignor's own documentation.
    "the deal goes on from topic to topic": Case(
        "java",
        (member("C0", "t0 t1"), member("C1", "t0 t1")),
        {"t0": 3, "t1": 3},
        {"C0": {"t0": (0, 2), "t1": (1,)}, "C1": {"t0": (1,), "t1": (0, 2)}},
    ),
    "members without the topic are passed over": Case(
        "java",
        (member("C0", "t0"), member("C1", "t0 t1"), member("C2", "t0 t1 t2")),
        {"t0": 1, "t1": 2, "t2": 3},
        {"C0": {"t0": (0,)}, "C1": {"t1": (0,)}, "C2": {"t1": (1,), "t2": (0, 1, 2)}},
    ),
    "a topic without metadata takes no turn": Case(
        "java", (member("a", "gone t"), member("b", "gone t")), {"t": 2}, EACH_ONE
    ),
    "racks never matter": Case(
        "java:4.3.1 librdkafka:2.16 franz-go", (member("a", rack="r1"), member("b", rack="r2")), {"t": 2}, EACH_ONE
    ),
    "a pattern is matched by librdkafka's own rules": Case(
        "librdkafka:1.2 librdkafka:1.4 librdkafka:2.16", (member("a", "^t.* t"),), {"t": 2}, "pattern"
    ),
    "kafka-python fails where a member must be passed over": Case(
        PYTHON, (A, member("b", "u")), {"t": 2, "u": 1}, "KeyError"
    ),
    "kafka-python before 2.3 passes members over": Case(
        "kafka-python:2.2.15 kafka-python:1.0",
        (A, member("b", "u")),
        {"t": 2, "u": 1},
        {"a": {"t": (0, 1)}, "b": {"u": (0,)}},
    ),
    # Partition 0 of t falls to a, and u's only one to b: no member is skipped.
    "kafka-python may differ in subscriptions that no turn meets": Case(
        PYTHON, (A, member("b", "t u")), {"t": 1, "u": 1}, {"a": {"t": (0,)}, "b": {"u": (0,)}}
    ),
    # t-0, t-1, t-10, t-2, ... in turn.
    "sarama deals partition 10 before partition 2": Case(
        "sarama:1.60.1", (A, B), {"t": 11}, {"a": {"t": (0, 3, 5, 7, 9, 10)}, "b": {"t": (1, 2, 4, 6, 8)}}
    ),
    "sarama does not look at instance ids": Case(
        "sarama:1.60.1", (A, member("b", instance="0")), {"t": 1}, {"a": {"t": (0,)}}
    ),
    "Java looks at instance ids": Case("java:3.7.1", (A, member("b", instance="0")), {"t": 1}, {"b": {"t": (0,)}}),
    "librdkafka before 1.5 with equal subscriptions": Case("librdkafka:1.4.4", (A, B), {"t": 2}, EACH_ONE),
    "librdkafka before 1.5 with different subscriptions": Case(
        "librdkafka:1.4.4", (A, member("b", "")), {"t": 2}, "past the end of its member list"
    ),
    "librdkafka from 1.5 on with different subscriptions": Case(
        "librdkafka:1.5.0 librdkafka:1.5.2 librdkafka:1.5.3", (A, member("b", "")), {"t": 2}, {"a": {"t": (0, 1)}}
    ),
    # confluentinc/librdkafka#3159, by hand: next = (-1+1)%2 = 0, m1; then 1, m2 without the topic; (1+1)%2 = 0, m1.
    "librdkafka 1.5.2 wraps at the number of a topic's subscribers": Case(
        "librdkafka:1.5.2", (M1, M2, M3), {"A": 4}, {"m1": {"A": (0, 1, 2, 3)}}
    ),
    "librdkafka 1.5.0 aborts there": Case("librdkafka:1.5.0", (M1, M2, M3), {"A": 4}, "aborts"),
    "librdkafka 1.5.3 does not wrap there": Case(
        "librdkafka:1.5.3", (M1, M2, M3), {"A": 4}, {"m1": {"A": (0, 2)}, "m3": {"A": (1, 3)}}
    ),
    "librdkafka 1.5.2 searches without end where no first member subscribes": Case(
        "librdkafka:1.5.2", (member("m1", "B"), member("m2", "A")), {"A": 1}, "does not find a subscriber"
    ),
    "kafka-go begins each topic with its first subscriber": Case(
        "kafka-go", ALIKE, {"t": 1, "u": 1}, {"a": {"t": (0,), "u": (0,)}}
    ),
    "a topic listed twice counts twice in kafka-go": Case(
        "kafka-go", (member("a", "t t"), B), {"t": 6}, {"a": {"t": (0, 1, 3, 4)}, "b": {"t": (2, 5)}}
    ),
    # FNV-1a of "ta" is 0x41387aa9, of "tb" 0x40387916: b comes first.
    "old sarama takes members in the order of a hash": Case(
        "sarama:1.27", ALIKE, {"t": 3}, {"b": {"t": (0, 2)}, "a": {"t": (1,)}}
    ),
    "krafka does not sort its members": Case("krafka", ALIKE, {"t": 3}, {"b": {"t": (0, 2)}, "a": {"t": (1,)}}),
    "platformatic keeps the order of the response and of the leader's topics": Case(
        "@platformatic/kafka",
        (B, member("a", "u t")),
        {"t": 1, "u": 2},
        {"b": {"u": (0,), "t": (0,)}, "a": {"u": (1,)}},
        leader="a",
    ),
    "platformatic without the leader": Case("@platformatic/kafka", ALIKE, {"t": 1}, "which member led"),
}
OF_KAFKAJS = {
    "a leader deals its own topics to all members": Case(
        "kafkajs", LEADERS, {"t": 2, "u": 3}, {"b": {"u": (1,), "t": (0,)}, "a": {"u": (0, 2), "t": (1,)}}, leader="a"
    ),
    "a leader of fewer topics": Case(
        "kafkajs", LEADERS, {"t": 2, "u": 3}, {"b": {"u": (1,)}, "a": {"u": (0, 2)}}, leader="b"
    ),
    "before 1.13 each topic begins with the first member": Case(
        "kafkajs:1.12", ALIKE, {"t": 1, "u": 1}, {"a": {"t": (0,), "u": (0,)}}, leader="a"
    ),
    "from 1.13 on the deal goes on": Case(
        "kafkajs:1.13", ALIKE, {"t": 1, "u": 1}, {"a": {"t": (0,)}, "b": {"u": (0,)}}, leader="a"
    ),
    "without the leader": Case("kafkajs", ALIKE, {"t": 1}, "which member led"),
}
RANGES = {
    # 5 partitions on 2 members: 0*5/2 = 0 to 1*5/2 = 2, then 2 to 5.
    "kafka-go cuts by multiplication": Case("kafka-go", ALIKE, {"t": 5}, {"b": {"t": (2, 3, 4)}, "a": {"t": (0, 1)}}),
    "a topic listed twice counts twice in kafka-go": Case(
        "kafka-go", (member("a", "t t"), B), {"t": 6}, {"a": {"t": (0, 1, 2, 3)}, "b": {"t": (4, 5)}}
    ),
    # floor(1 * 1.5 + 0.5) = 2: of 3 partitions the first member gets 2, the second 1. Of 9 for four, bounds 2.25, 4.5
    # and 6.75 become 2, 5, 7.
    "sarama-cluster rounds the bounds": Case("sarama-cluster", ALIKE, {"t": 3}, {"a": {"t": (0, 1)}, "b": {"t": (2,)}}),
    "sarama-cluster rounds the bounds of four": Case(
        "sarama-cluster",
        [member(name) for name in "abcd"],
        {"t": 9},
        {"a": {"t": (0, 1)}, "b": {"t": (2, 3, 4)}, "c": {"t": (5, 6)}, "d": {"t": (7, 8)}},
    ),
    "old sarama takes members in the order of a hash": Case(
        "sarama:1.27", ALIKE, {"t": 3}, {"b": {"t": (0, 1)}, "a": {"t": (2,)}}
    ),
    "sarama takes members by id": Case("sarama:1.34.1", ALIKE, {"t": 3}, {"a": {"t": (0, 1)}, "b": {"t": (2,)}}),
    "krafka does not sort its members": Case("krafka", ALIKE, {"t": 3}, {"b": {"t": (0, 1)}, "a": {"t": (2,)}}),
    "kafka-php deals in turn": Case("kafka-php", (B, A), {"t": 3}, {"b": {"t": (0, 2)}, "a": {"t": (1,)}}, leader="a"),
    "kafka-php without the leader": Case("kafka-php", ALIKE, {"t": 1}, "which member led"),
}


@each(DEALT)
def test_a_group_gets_what_was_worked_out_by_hand(case: Case, library: str) -> None:
    check(replace(case, strategy="roundrobin"), library)


@each(OF_KAFKAJS)
def test_a_group_of_kafkajs_gets_what_was_worked_out_by_hand(case: Case, library: str) -> None:
    check(replace(case, strategy=KAFKAJS), library)


@each(RANGES)
def test_a_range_of_an_algorithm_of_its_own_gets_what_was_worked_out_by_hand(case: Case, library: str) -> None:
    check(case, library)


@pytest.mark.parametrize(("strategy", "library"), [("range", "kafka-php"), ("roundrobin", "kafka-node")])
def test_topics_in_the_broker_s_order_leave_as_many_results_as_there_are_orders(strategy: str, library: str) -> None:
    with pytest.raises(CannotTell) as caught:
        assign(strategy, Group((member("a", "t u"), member("b", "t u")), {"t": 1, "u": 2}, leader="a"), library)

    assert list(caught.value.possible) == [
        {"a": {"t": range(1), "u": range(1, 2, 2)}, "b": {"u": range(0, 2, 2)}},
        {"a": {"t": range(1), "u": range(0, 2, 2)}, "b": {"u": range(1, 2, 2)}},
    ]

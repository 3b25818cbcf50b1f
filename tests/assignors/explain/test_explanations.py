"""Explanations of small groups: what each member keeps, gets and gives up."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from assignors import Group, Library, Subscription, assign, same
from assignors.explain import explain_line
from assignors.jsonl import write_client_line
from tests.assignors.clients.sticky.members import claiming, cooperative, owning, read_by_kafka_python
from tests.assignors.random_groups import random_group

JAVA = Library("java", (3, 7, 1))
T, U = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


def explained(strategy: str, members: tuple[Subscription, ...], /, library: Library = JAVA, **counts: int) -> Any:
    line = write_client_line(strategy, Group(members, counts), library, None)
    return explain_line(json.loads(json.dumps(line)))  # as a pipe would


PLAIN = Subscription("a", ("t",)), Subscription("b", ("t",))


def test_what_members_get_is_told_member_by_member() -> None:
    told = explained("range", PLAIN, t=3)
    assert told.sentences()[1:] == ["a gets t 0-1.", "b gets t 2.", "In all 3 partitions for 2 members, 1 to 2 each."]


def test_a_member_keeps_what_it_says_it_had_and_gives_up_what_it_does_not_get() -> None:
    told = explained("sticky", (claiming("a", "t", t=(0, 1, 2)), claiming("b", "t")), t=4)
    assert told.sentences()[1:3] == ["a keeps t 0-1, gives up t 2.", "b gets t 2-3."]


def test_a_claim_counts_in_whatever_form_the_library_of_the_group_writes_it() -> None:
    written = read_by_kafka_python(claiming("a", "t", t=(0,)), claiming("b", "t", t=(1,)))
    for library, members in (
        (Library("kafka-python", (3, 0, 12)), written),
        (JAVA, (claiming("a", "t", t=(0,)), claiming("b", "t", t=(1,)))),
    ):
        assert explained("sticky", members, library, t=2).sentences()[1:3] == ["a keeps t 0.", "b keeps t 1."]
    librdkafka = Library("librdkafka", (2, 16))
    told = explained("cooperative-sticky", (owning("a", "t", t=(0,)), owning("b", "t", t=(1,))), librdkafka, t=2)
    assert told.sentences()[1:3] == ["a keeps t 0.", "b keeps t 1."]


def test_what_is_held_back_is_given_up_and_nobody_s_in_this_generation() -> None:
    told = explained(
        "cooperative-sticky", (cooperative("a", "t", owned={"t": (0, 1)}), cooperative("b", "t", owned={})), t=2
    )
    assert "not assigned in this generation" in told.rule
    assert told.sentences()[1:3] == ["a keeps t 0, gives up t 1.", "b gets nothing."]
    assert told.sentences(("t", 1))[-1] == "a claimed t 1. Nobody should own t 1."


def test_owners_are_those_that_the_strategy_gives_whatever_the_group() -> None:
    random = Random("explained")
    for strategy in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        for _ in range(50):
            group = random_group(random)
            told = explain_line(json.loads(json.dumps(write_client_line(strategy, group, JAVA))))
            assert same(told.assignment, assign(strategy, group, JAVA))
            for topics in told.assignment.values():
                for topic, numbers in topics.items():
                    for number in numbers:
                        owner = told.sentences((topic, number))[-1]
                        assert owner.endswith(f" {number}.")
                        assert not owner.startswith("Nobody")


def on_server(release: str, of_b: list[str]) -> Any:
    """a had what is dealt now, and a partition of u, which it does not subscribe to any more."""
    members = {
        "a": {"topics": ["t"], "target": [[T, [0]], [U, [0]]]},
        "b": {"topics": of_b, "target": [[T, [1]]]},
    }
    topics = {"t": {"id": T, "partitions": 2}, "u": {"id": U, "partitions": 1}}
    return {"strategy": "server-uniform", "library": release, "members": members, "topics": topics}


def test_a_broker_s_members_had_their_previous_targets() -> None:
    told = explain_line(on_server("4.0.0", ["t"]))
    assert told.sentences()[1:3] == ["a keeps t 0, gives up u 0.", "b keeps t 1."]


def test_a_share_group_s_partitions_may_be_given_to_several_members() -> None:
    topics = {"t": {"id": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": 3, "initialized": [0, 1]}}
    members = {"a": {"topics": ["t"], "target": [["AAAAAAAAAAAAAAAAAAAAAQ", [0, 1]]]}, "b": {"topics": ["t"]}}
    line = {"strategy": "server-simple", "library": "4.3.1", "topics": topics}
    told = explain_line(line | {"members": members | {"c": {"topics": ["t"]}}})

    assert told.listed() == "t 0-1"
    assert told.sentences()[1:] == [
        "a keeps t 0-1.",
        "b gets t 1.",
        "c gets t 0.",
        "In all 2 partitions given 4 times to 3 members, 1 to 2 each.",
    ]


def test_a_library_with_an_algorithm_of_its_own_is_not_told_by_java_s_rule() -> None:
    told = explained("range", PLAIN, Library("kafka-go"), t=3)
    assert told.rule.startswith("kafka-go has its own algorithm under the name range")


def test_only_a_partition_that_the_strategy_was_given_can_be_nobody_s() -> None:
    unread = explain_line(json.loads(json.dumps(write_client_line("range", Group((), {"t": 1}), JAVA, None))))
    assert unread.sentences(("t", 0))[-1] == "Nobody should own t 0."
    for told in (explained("range", PLAIN, t=3), explain_line(on_server("4.0.0", ["t"]))):
        for topic, number in (("t", 3), ("tt", 0)):
            assert told.meant((topic, number)) == ()
            lacking = f"There is no partition {topic} {number} in what the strategy was given."
            assert told.sentences((topic, number)) == [told.rule, lacking]


def test_a_claim_beyond_the_topic_is_told_and_its_partition_is_nobody_s() -> None:
    told = explained("sticky", (claiming("a", "t", t=(0, 7)), claiming("b", "t")), t=2)
    assert told.meant(("t", 7)) == (("t", 7),)
    assert told.sentences(("t", 7))[-1] == "a claimed t 7. Nobody should own t 7."


def test_an_assignment_that_cannot_be_computed_says_why_and_has_its_partitions() -> None:
    told = explained("sticky", PLAIN, Library("librdkafka", (2, 16)), t=3)
    assert told.assignment is None
    assert told.sentences()[1:] == ["It cannot be computed: this library's sticky is not recomputed."]
    assert told.sentences(("t", 0))[2:] == ["Who should own t 0 is not known."]
    assert told.sentences(("t", 9))[2:] == ["There is no partition t 9 in what the strategy was given."]


def test_a_large_group_is_told_by_its_first_members_and_in_all() -> None:
    members = tuple(Subscription(f"m{number:03}", ("t",)) for number in range(200))
    told = explained("range", members, t=1_000)
    assert len(told.sentences()) == 14
    assert told.sentences()[-1] == "In all 1,000 partitions for 200 members, 5 each."


def of_queues(strategy: str, clients: list[str], **options: Any) -> Any:
    """Queues 0 and 1 of a topic on each of two brokers."""
    queues = [{"topic": "q", "broker": broker, "queue": n} for broker in ("r1@x", "r2@x") for n in (0, 1)]
    return explain_line({"strategy": f"rocketmq:{strategy}", "queues": queues, "clients": clients, "options": options})


def test_queues_of_rocketmq_are_named_by_topic_and_broker() -> None:
    told = of_queues("AVG", ["c", "d"])
    assert told.sentences()[1:3] == ["c gets q@r1@x 0-1.", "d gets q@r2@x 0-1."]
    assert told.sentences(("q", 1))[1:] == ["c should own q@r1@x 1.", "d should own q@r2@x 1."]
    assert told.sentences(("q@r2@x", 1))[1:] == ["d should own q@r2@x 1."]


def test_where_the_call_of_a_client_throws_nobody_is_said_to_own_its_queues_for_sure() -> None:
    told = of_queues("MACHINE_ROOM", ["c", "d"])
    assert told.sentences()[1].startswith("The call of 2 of the clients throws, so each keeps what it has (c: Null")
    assert told.sentences(("q@r1@x", 0))[-1] == "Nobody that is known should own q@r1@x 0."


def test_a_queue_of_a_client_s_configured_list_is_told_although_the_topic_lacks_it() -> None:
    told = of_queues("CONFIG", ["c"], message_queue_list=[{"topic": "q", "broker": "z", "queue": 7}])
    assert told.sentences(("q", 7))[1:] == ["c should own q@z 7."]


@pytest.mark.parametrize(("name", "shown"), [("", "''"), ("x" * 100, "x" * 79 + "…")])
def test_a_foreign_name_is_shown_within_a_sentence(name: str, shown: str) -> None:
    assert explained("range", (Subscription(name, ("t",)),), t=1).sentences()[1] == f"{shown} gets t 0."

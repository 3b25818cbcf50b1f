"""Explanations of small groups, from the notes of the computation to the steps and the words around them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from assignors import Group, Library, Subscription
from assignors.clients.sticky.claims import NOTHING, write_sticky
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.context import Believed, Note
from assignors.explain import brokers, candidates, clients, explain_line
from assignors.explain.sticky_steps import Generations, GivenUp, Kept, Moved, NotBelieved, Undone
from assignors.jsonl import write_client_line
from assignors.steps import DealtInTurn, Step
from tests.assignors.clients.sticky.members import claiming, cooperative, owning, read_by_kafka_python

JAVA = Library("java", (3, 7, 1))
T, U = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


def explained(strategy: str, members: tuple[Subscription, ...], /, library: Library = JAVA, **counts: int) -> Any:
    line = write_client_line(strategy, Group(members, counts), library, None)
    return explain_line(json.loads(json.dumps(line)))  # as a pipe would


def kinds(steps: tuple[Step, ...], kind: type[Step]) -> list[Step]:
    return [step for step in steps if isinstance(step, kind)]


PLAIN = Subscription("a", ("t",)), Subscription("b", ("t",))


def test_a_claim_loses_to_one_of_a_newer_generation() -> None:
    members = (
        cooperative("a", "t", owned={"t": (0, 1)}, generation=3),
        cooperative("b", "t", owned={"t": (1, 2)}, generation=4),
    )
    told = explained("cooperative-sticky", members, t=3)
    assert kinds(told.steps, NotBelieved) == [NotBelieved("a", (("t", 1),), "newer", "b", 3, 4)]


def test_two_claims_of_one_generation_are_nobody_s() -> None:
    members = cooperative("a", "t", owned={"t": (0, 1)}), cooperative("b", "t", owned={"t": (1, 2)})
    told = explained("cooperative-sticky", members, t=3)
    assert kinds(told.steps, NotBelieved) == [NotBelieved(m, (("t", 1),), "twice", mine=1) for m in "ab"]


def test_librdkafka_gives_nobody_a_partition_that_two_claim_in_one_generation() -> None:
    members = owning("a", "t", t=(0, 1)), owning("b", "t", t=(1, 2))
    told = explained("cooperative-sticky", members, Library("librdkafka", (2, 16)), t=3)
    assert kinds(told.steps, NotBelieved) == [NotBelieved(m, (("t", 1),), "twice", mine=3) for m in "ab"]


def test_a_claim_that_the_leader_compares_with_no_generation_loses_to_another() -> None:
    # `sticky` from 3.4.1 on compares the later claim with the field of the earlier subscription, which is not set.
    told = explained("sticky", (claiming("a", "t", t=(0, 1)), claiming("b", "t", t=(1, 2))), t=3)
    assert kinds(told.steps, NotBelieved) == [NotBelieved("a", (("t", 1),), "other", mine=3)]


def test_a_claim_of_one_alone_that_loses_is_not_claimed_twice() -> None:
    # Before 3.4.1 only claims of the highest generation count.
    members = claiming("a", "t", 2, t=(0,)), claiming("b", "t", 3, t=(1, 2))
    told = explained("sticky", members, Library("java", (3, 0)), t=3)
    assert kinds(told.steps, NotBelieved) == [NotBelieved("a", (("t", 0),), "old", None, 2, 3)]


def test_a_claim_of_a_topic_that_is_gone_does_not_count_and_one_beyond_the_topic_is_given_up() -> None:
    told = explained("sticky", (claiming("a", "t", t=(0, 7), gone=(0,)), claiming("b", "t")), t=2)
    assert kinds(told.steps, NotBelieved) == [NotBelieved("a", (("gone", 0),), "gone", mine=3)]
    assert kinds(told.steps, GivenUp) == [GivenUp("a", (("t", 7),), "share")]


def test_a_member_that_keeps_all_it_had_keeps_it_in_the_order_of_its_claims() -> None:
    told = explained("sticky", (claiming("a", "t u", u=(0,), t=(0,)),), t=1, u=1)
    assert kinds(told.steps, Kept) == [Kept("a", (("u", 0), ("t", 0)), 2)]


@pytest.mark.parametrize(("rack", "other", "why"), [("r", "s", "rack"), ("far", "r", "share")])
def test_a_partition_is_given_up_for_the_member_s_rack_only_where_racks_count(rack: str, other: str, why: str) -> None:
    # They do where the replicas are not in the same racks everywhere. Each of the two may have one.
    members = replace(claiming("a", "t", t=(0, 1)), rack=rack), replace(claiming("b", "t"), rack=other)
    line = write_client_line("sticky", Group(members, {"t": 2}), JAVA, {"t": [["r"], [other]]})
    told = explain_line(json.loads(json.dumps(line)))
    assert kinds(told.steps, GivenUp) == [GivenUp("a", (("t", 1),), why)]


def moved(meant: Note | None, note: Note) -> Step:
    """The move of a group in which a has t-0 to t-3 and b nothing; c subscribes to nothing."""
    group = Group((*PLAIN, Subscription("c", ())), {"t": 4})
    begun = Believed(IndexedGroup.of_java(group), [()] * 3, [NOTHING] * 3, "highest")
    notes = [begun, Note("given", "least", [(partition, 0) for partition in range(4)])]
    facts = clients.facts_of(group, None)
    return clients.sticky_steps([*notes, *([meant] if meant is not None else []), note], facts)[-1]


def test_a_move_has_the_reason_of_what_was_meant_and_another_target_is_for_balance() -> None:
    first, other = ("t", 0), ("t", 1)
    back = Note("meant", "previous", [(0, 1)])
    assert moved(None, Note("moved", "", [(1, 1)], 0)) == Moved(other, "a", "b", 4, 0, "balance")
    assert moved(None, Note("moved", "share", [(1, 1)], 0)) == Moved(other, "a", "b", 4, 0, "share")
    assert moved(back, Note("moved", "", [(0, 1)], 0)) == Moved(first, "a", "b", 4, 0, "previous")
    assert moved(back, Note("moved", "", [(1, 1)], 0)) == Moved(other, "a", "b", 4, 0, "previous", first)
    assert moved(back, Note("moved", "", [(0, 2)], 0)) == Moved(
        first, "a", "c", 4, 0, "balance", first, unsubscribed=True
    )
    assert moved(back, Note("moved", "share", [(1, 1)], 0)) == Moved(other, "a", "b", 4, 0, "share")


def test_moves_that_the_leader_takes_back_are_told_with_their_number() -> None:
    # By then a, which had t-0 before, counts as a member too: 1, 2, 1 and 0 are no more even than 1, 3 and 0.
    a, d = claiming("a", "", 1, t=(0,)), claiming("d", "t")
    members = read_by_kafka_python(a, claiming("b", "t", t=(0,)), claiming("c", "t", t=(1, 2, 3)), d)
    told = explained("sticky", members, Library("kafka-python", (3, 0, 12)), t=4)
    assert told.steps[-3:-1] == (Moved(("t", 1), "c", "d", 3, 0, "balance"), Undone(1))
    assert told.assignment["c"] == {"t": (1, 2, 3)}


def test_turns_are_a_step_per_topic_but_for_sarama_s_one_in_an_order_of_texts() -> None:
    of_t, of_u = ((("t", 0, "a"), ("t", 1, "b")), (("u", 0, "a"), ("u", 1, "b")))
    members = Subscription("a", ("t", "u")), Subscription("b", ("t", "u"))
    assert kinds(explained("roundrobin", members, t=2, u=2).steps, DealtInTurn) == [
        DealtInTurn(of_t),
        DealtInTurn(of_u),
    ]
    told = explained("roundrobin", members, Library("sarama"), t=2, u=2)
    assert kinds(told.steps, DealtInTurn) == [DealtInTurn((*of_t, *of_u), mixed=True)]


def on_server(release: str, of_b: list[str]) -> Any:
    """a had what is dealt now, and a partition of u, which it does not subscribe to any more."""
    members = {
        "a": {"topics": ["t"], "target": [[T, [0]], [U, [0]]]},
        "b": {"topics": of_b, "target": [[T, [1]]]},
    }
    topics = {"t": {"id": T, "partitions": 2}, "u": {"id": U, "partitions": 1}}
    return {"strategy": "server-uniform", "library": release, "members": members, "topics": topics}


def test_a_broker_s_uniform_says_what_is_given_up_by_subscription_where_it_looks_at_that() -> None:
    gone = [GivenUp("a", (("u", 0),), "subscription")]
    for release in ("3.8.0", "4.0.0"):
        assert kinds(explain_line(on_server(release, ["t", "u"])).steps, GivenUp) == gone
        # Where all members subscribe to the same topics it goes by shares.
        assert kinds(explain_line(on_server(release, ["t"])).steps, GivenUp) == []


@pytest.mark.parametrize(("strategy", "why"), [("server-uniform", "share"), ("server-range", "share_of_topic")])
def test_a_broker_says_what_a_member_gives_up_for_its_share(strategy: str, why: str) -> None:
    line = on_server("3.8.0", ["t"]) | {"strategy": strategy}
    line["members"] = {"a": {"topics": ["t"], "target": [[T, [0, 1]]]}, "b": {"topics": ["t"], "target": []}}
    assert kinds(explain_line(line).steps, GivenUp) == [GivenUp("a", (("t", 1),), why)]


def test_the_brokers_range_kept_what_members_had_before_3_9() -> None:
    assert "lets members keep" in brokers.rule_of("server-range", (3, 8))
    for release in ((3, 9), (4, 0), None):
        assert "cuts each topic by itself" in brokers.rule_of("server-range", release)
    assert "lets members keep" in brokers.rule_of("server-uniform", (3, 8))


@pytest.mark.parametrize(
    ("library", "racks"),
    [
        (Library("java", (3, 5)), True),
        (Library("java", (3, 4)), False),
        (Library("java"), True),
        (Library("librdkafka", (2, 2)), True),
        (Library("librdkafka", (2, 1)), False),
        (Library("sarama"), False),
    ],
)
def test_racks_are_part_of_the_rule_of_range_where_the_library_has_them(library: Library, *, racks: bool) -> None:
    assert ("Racks change" in clients.rule_of("range", library, in_racks=True)) == racks
    assert "Racks" not in clients.rule_of("range", library, in_racks=False)
    assert "Racks" not in clients.rule_of("roundrobin", library, in_racks=True)


def test_the_nearest_candidate_is_first_and_the_group_s_own_strategy_before_others() -> None:
    line: dict[str, Any] = write_client_line("roundrobin", Group(PLAIN, {"t": 4}), JAVA, None)
    line = json.loads(json.dumps(line))
    cut = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
    turns = {"a": {"t": (0, 2)}, "b": {"t": (1, 3)}}
    near = candidates(line, cut)
    assert (near[0].strategy, len(near[0].differences)) == ("range", 0)
    assert near[0].line | {"strategy": "roundrobin", "library": line["library"]} == line
    near = candidates(line, turns)
    assert (near[0].strategy, len(near[0].differences)) == ("roundrobin", 0)
    assert [len(one.differences) for one in near] == sorted(len(one.differences) for one in near)
    assert len({(one.strategy, one.library) for one in near}) == len(near)


def test_brokers_candidates_are_releases_and_nothing_is_near_without_a_strategy_of_kafka() -> None:
    line = on_server("4.0.1", ["t"])
    near = candidates(line, {"a": {"t": (0,)}, "b": {"t": (1,)}})
    assert [one.library for one in near] == ["3.8.0", "3.9.0", "4.0.0", "4.0.1"]
    assert all((one.strategy, one.differences) == ("server-uniform", ()) for one in near)
    assert near[1].line == line | {"library": "3.9.0"}
    for strategy in ("rocketmq:AVG", "nobodys", 7):
        assert candidates({"strategy": strategy}, {}) == []


def test_a_partition_alone_is_told_by_the_steps_that_name_it_and_its_owner() -> None:
    told = explained("range", PLAIN, t=3)
    assert [len(told.sentences()), len(told.sentences(("t", 2)))] == [4, 3]
    assert told.sentences(("t", 2))[-1] == "In the end b should own t 2."
    assert [step["kind"] for step in told.json()["steps"]] == ["order", "blocks", "result"]
    assert [step["kind"] for step in told.json(("t", 2))["steps"]] == ["blocks"]
    assert told.json(("t", 2))["steps"][0]["text"] == told.sentences(("t", 2))[1]
    assert [told.step_of(("t", 2)), told.step_of(("t", 3))] == [1, None]


def test_only_a_partition_that_the_strategy_was_given_can_be_nobody_s() -> None:
    unread = explain_line(json.loads(json.dumps(write_client_line("range", Group((), {"t": 1}), JAVA, None))))
    assert unread.sentences(("t", 0))[-1] == "In the end nobody owns t 0."
    for told in (explained("range", PLAIN, t=3), explain_line(on_server("4.0.0", ["t"]))):
        for topic, number in (("t", 3), ("tt", 0)):
            assert told.meant((topic, number)) == ()
            lacking = f"There is no partition {topic} {number} in what the strategy was given."
            assert told.sentences((topic, number)) == [told.rule, lacking]
            assert told.json((topic, number))["steps"] == []


def test_a_claim_beyond_the_topic_is_told_and_its_partition_is_nobody_s() -> None:
    told = explained("sticky", (claiming("a", "t", t=(0, 7)), claiming("b", "t")), t=2)
    assert told.meant(("t", 7)) == (("t", 7),)
    assert [step["kind"] for step in told.json(("t", 7))["steps"]] == ["given_up"]
    assert told.sentences(("t", 7))[-1] == "In the end nobody owns t 7."


def test_partitions_are_known_where_the_assignment_is_not() -> None:
    told = explained("sticky", PLAIN, Library("librdkafka", (2, 16)), t=3)
    assert told.assignment is None
    assert told.sentences(("t", 9))[2:] == ["There is no partition t 9 in what the strategy was given."]
    assert explained("nobodys", PLAIN, t=3).meant(("t", 2)) == (("t", 2),)


def test_an_assignment_that_cannot_be_computed_says_why() -> None:
    told = explained("sticky", PLAIN, Library("librdkafka", (2, 16)), t=3)
    assert told.sentences()[1:] == ["It cannot be computed: this library's sticky is not recomputed."]
    assert told.sentences(("t", 0))[2:] == ["Who should own t 0 is not known."]
    assert told.steps == ()


def test_racks_of_replicas_alone_are_not_part_of_the_rule() -> None:
    for rack in (None, "r"):
        members = tuple(replace(member, rack=rack) for member in PLAIN)
        line = write_client_line("range", Group(members, {"t": 2}), JAVA, {"t": [["r"], ["s"]]})
        told = explain_line(json.loads(json.dumps(line)))
        assert ("Racks change" in told.rule) == (rack is not None)


def test_a_broker_without_a_release_is_the_newest_one() -> None:
    line = on_server("3.8.0", ["t"]) | {"strategy": "server-range"}
    assert explain_line(line).by == "a broker of 3.8.0 or a later release that does the same"
    assert "in this release" in explain_line(line).rule
    told = explain_line({key: value for key, value in line.items() if key != "library"})
    assert (told.by, "in this release" in told.rule) == ("Kafka's newest broker", False)


def test_claims_that_come_without_a_generation_or_with_a_negative_one_are_of_none() -> None:
    old = Subscription("a", ("t",), user_data=write_sticky((("t", (0,)),), None))
    told = explained("sticky", (old, claiming("b", "t", 0, t=(1,)), claiming("c", "t", -5, t=(2,))), t=3)
    assert kinds(told.steps, Generations) == [Generations({"a": -1, "b": 0, "c": -1})]


def of_queues(strategy: str, clients: list[str], **options: Any) -> Any:
    """Queues 0 and 1 of a topic on each of two brokers."""
    queues = [{"topic": "q", "broker": broker, "queue": n} for broker in ("r1@x", "r2@x") for n in (0, 1)]
    return explain_line({"strategy": f"rocketmq:{strategy}", "queues": queues, "clients": clients, "options": options})


def test_queues_of_rocketmq_are_told_by_their_room_and_the_rooms_of_the_rule() -> None:
    told = of_queues("MACHINE_ROOM", ["c"], consumeridcs=["r2"])
    assert told.steps[0].text().startswith("2 queues of rooms r2 for 1 client make 2 each")
    told = of_queues("MACHINE_ROOM_NEARBY-MACHINE_ROOM", ["r1@c"], consumeridcs=["r1", "r2"], room_separator="@")
    assert [step.text().split(" for ")[0] for step in told.steps[:-1]] == [
        "2 queues of room r1 in rooms r1, r2",
        "2 queues of room r2, which has no client, in rooms r1, r2",
    ]


@pytest.mark.parametrize(
    "strategy", ["AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG"]
)
def test_queues_of_rocketmq_without_clients_go_to_nobody(strategy: str) -> None:
    told = of_queues(strategy, [], consumeridcs=["r1", "r2"], room_separator="@")

    assert (told.assignment, told.reason) == ({}, None)
    assert told.steps[-1].kind == "result"
    assert " make " not in told.steps[0].text()
    assert told.sentences(("q on r1@x", 0))[1:] == [
        "q on r1@x 0 goes to nobody.",
        "In the end nobody owns q on r1@x 0.",
    ]


def test_a_client_of_rocketmq_whose_call_throws_does_not_hide_those_after_it() -> None:
    told = of_queues("AVG", ["", "c"])
    assert told.assignment == {"": {}, "c": {"q on r2@x": (0, 1)}}
    assert [step.kind for step in told.steps] == ["fails", "result"]
    throws = (
        "The call of '' throws (IllegalArgumentException: currentCID is empty): such a client keeps the queues that"
    )
    assert told.sentences(("q", 0))[1:] == [
        f"Who owns q on r1@x 0 in the end is not known. {throws} it has.",
        "In the end c should own q on r2@x 0.",
    ]


def test_a_number_of_rocketmq_means_the_queues_of_every_broker() -> None:
    told = of_queues("AVG", ["c1", "c2"])
    dealt = [
        "q on r1@x 1 is number 2 of 4 queues, and c1 number 1 of 2 clients: its share.",
        "In the end c1 should own q on r1@x 1.",
        "q on r2@x 1 is number 4 of 4 queues, and c2 number 2 of 2 clients: its share.",
        "In the end c2 should own q on r2@x 1.",
    ]
    assert told.sentences(("q", 1))[1:] == dealt
    assert [step["text"] for step in told.json(("q", 1))["steps"]] == dealt[::2]
    for typed in ("q on r2@x", "q@r2@x"):
        assert told.sentences((typed, 1))[1:] == dealt[2:]
    for typed in (("q", 2), ("nosuch", 0), ("q on r3@x", 0), ("q on", 0)):
        assert told.meant(typed) == ()


def test_a_queue_of_the_list_in_a_client_s_code_counts_as_given() -> None:
    listed = [{"topic": "q", "broker": "elsewhere", "queue": 5}]
    told = of_queues("CONFIG", ["c"], message_queue_list=listed)
    assert told.sentences(("q", 5))[-1] == "In the end c should own q on elsewhere 5."
    assert told.sentences(("q", 0))[-1] == "In the end nobody owns q on r2@x 0."

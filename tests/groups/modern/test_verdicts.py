"""The broker's target compared with its assignor's result: a match is a fact, a mismatch alone proves nothing."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server, known_server_strategies
from streaming.groups import unpack_inputs
from streaming.groups.rows import DriftedPartition, DriftRow
from tests.groups.build import GROUP, Life, make_observation, make_topic
from tests.groups.coordinator import PARTITIONS, Assignor, Coordinator, Owned, Written, lives
from tests.groups.modern_log import (
    FIRST,
    SECOND_JOINS,
    TOPIC_ID,
    asking,
    epoch,
    gone,
    metadata,
    observation,
    read,
    stands,
    target,
)
from tests.groups.verdicts import recompute_all
from tests.offsets_log.written import member_metadata, other_key


def verdicts(*log: Written, count: int | None = 4) -> list[DriftRow]:
    life = Life.after(*read(list(log)))
    orders = make_topic("orders", count, topic_id=TOPIC_ID)
    return life.take(make_observation(10 + len(log), orders, state=None, group_type="consumer")).drift


def test_a_target_that_the_assignor_gives_is_identical() -> None:
    # Uniform, by hand: two of four each; a keeps its first two, b gets the rest.
    first, second = verdicts(*FIRST, *SECOND_JOINS, target("a", 0, 1), target("b", 2, 3), stands(2))
    assert (first.verdict, first.reason, first.strategy) == ("identical", None, "uniform")
    assert (second.verdict, second.matching_library, second.candidates) == ("identical", "broker:4.0.0", 1)
    assert (second.decision, second.generation, second.incarnation) == (19, 2, 13)


def test_a_target_that_no_candidate_gives_is_no_alarm() -> None:
    _, second = verdicts(*FIRST, *SECOND_JOINS, target("a", 0, 3), target("b", 1, 2), stands(2))
    assert (second.verdict, second.drifted_count) == ("unverified", 0)
    assert second.reason == (
        "no candidate gives it; "
        "custom assignors, some member orders and brokers before 4.0 (preview) are not recomputed"
    )
    assert json.loads(unpack_inputs(second.inputs or b""))["library"] == "4.0.0"  # those of the first that was tried


def test_a_target_of_a_broker_with_a_preview_of_the_protocol_is_unverified() -> None:
    # b owns 0 1 2, a joins: range of 3.8 lets b keep two, that of any later release gives a the first two.
    log = [asking("b", "range"), epoch(1), target("b", 0, 1, 2), stands(1)]
    log += [asking("a", "range"), epoch(2), target("a", 2), target("b", 0, 1), stands(2)]
    row = verdicts(*log, count=3)[-1]
    assert (row.verdict, row.matching_library) == ("unverified", None)
    assert "brokers before 4.0 (preview) are not recomputed" in (row.reason or "")


@pytest.mark.parametrize("first", ["Aa", "BB"])
def test_members_that_share_a_bucket_may_stand_in_either_order(first: str) -> None:
    # "Aa" and "BB" have the same hash code: the one that the coordinator inserted first comes first, and gets more.
    second = {"Aa": "BB", "BB": "Aa"}[first]
    log = [metadata("Aa"), metadata("BB"), epoch(1), target("Aa"), target("BB"), stands(1)]
    log += [metadata("c"), epoch(2), target("c"), stands(2), *gone("c"), epoch(3)]
    log += [target(first, 0, 1), target(second, 2), stands(3)]
    assert verdicts(*log, count=3)[-1].verdict == "identical"


def test_without_an_assignor_asked_for_both_of_the_brokers_are_tried() -> None:
    log = [asking("b", None), epoch(1), target("b", 0, 1, 2), stands(1)]
    log += [asking("a", None), epoch(2), target("a", 0, 1), target("b", 2), stands(2)]
    # Range, by hand: a is first and gets the larger part; uniform would leave b its partitions.
    second = verdicts(*log, count=3)[-1]
    assert (second.verdict, second.matching_library, second.strategy) == ("identical", "broker:4.0.0", None)


@pytest.mark.parametrize(
    ("log", "drifted"),
    [
        (
            (*SECOND_JOINS, target("a", 0, 1), target("b", 1, 2, 3), stands(2)),
            DriftedPartition("orders", 1, "doubly_assigned", None, ("a", "b")),
        ),
        (
            (
                (other_key(5, GROUP, "b"), member_metadata(["other"])),
                epoch(2),
                target("a", 0, 1, 2),
                target("b", 3),
                stands(2),
            ),
            DriftedPartition("orders", 3, "not_subscribed", None, ("b",)),
        ),
    ],
)
def test_what_no_assignor_may_do_is_drift(log: tuple[Written, ...], drifted: DriftedPartition) -> None:
    second = verdicts(*FIRST, *log)[-1]
    assert (second.verdict, second.drifted_partitions) == ("drifted", (drifted,))


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (FIRST[3:], "the previous target is not known: earlier records of the group may be missing"),
        (
            (*FIRST, *SECOND_JOINS, epoch(3), target("a", 0, 1), target("b", 2, 3), stands(2)),
            "members or subscriptions have changed since the epoch of the target",
        ),
        (
            (*FIRST, (other_key(5, GROUP, "a"), member_metadata([], regex="o.*")), epoch(2), stands(2)),
            "what the regular expression of member 'a' matches is not known",
        ),
        (
            (*FIRST, (other_key(5, GROUP, "a"), member_metadata(["orders", "more"])), epoch(2), stands(2)),
            "no round has shown topic 'more': its id is not known",
        ),
        ((*FIRST, asking("a", "mine"), epoch(2), stands(2)), "assignor 'mine' is not known"),
        ((*FIRST, *SECOND_JOINS, target("a", 0, 1, 2, 3), stands(2)), "the log lacks records of member 'b'"),
    ],
)
def test_what_is_not_known_is_said_and_no_verdict_invented(log: tuple[Written, ...], reason: str) -> None:
    row = verdicts(*log)[-1]
    assert (row.verdict, row.reason) == ("unverified", reason)


def test_of_decisions_that_no_round_has_judged_the_newest_are_recomputed() -> None:
    log = [*FIRST, *(record for number in range(2, 102) for record in (epoch(number), stands(number)))]
    rows = verdicts(*log)
    assert [row.generation for row in rows] == list(range(38, 102))
    assert {(row.verdict, row.reason) for row in rows} == {("identical", None)}


@pytest.mark.parametrize("end", [[], [*gone("a", "b"), (other_key(6, GROUP), None), (other_key(3, GROUP), None)]])
def test_a_decision_is_judged_even_if_the_group_is_gone_at_the_next_round(end: list[Written]) -> None:
    life = Life.after(*read(FIRST), observation(15))
    life.take(*read([*SECOND_JOINS, target("a", 0, 1), target("b", 2, 3), stands(2), *end], 15))
    rows = life.take(observation(30, gone="deleted"))
    assert [(row.decision, row.verdict) for row in rows.drift] == [(19, "identical")]


def test_a_count_that_no_round_saw_leaves_the_verdict_open() -> None:
    (row,) = verdicts(*FIRST, count=6)
    assert (row.verdict, row.reason) == (
        "unverified",
        "its target shows 4 partitions of topic 'orders', rounds have seen 6",
    )


@pytest.mark.parametrize(("grown_at", "verdict"), [(404, "identical"), (403, "unverified")])
def test_a_count_that_the_coordinator_may_still_have_known_within_ten_minutes_explains_a_target(
    grown_at: int, verdict: str
) -> None:
    # The target is decided at 1,003.
    life = Life()
    for second, count in ((300, 4), (grown_at, 6)):
        life.take(make_observation(second, make_topic("orders", count, topic_id=TOPIC_ID)))
    life.take(*read(FIRST, 1_000), make_observation(1_010, make_topic("orders", 6, topic_id=TOPIC_ID), state=None))
    assert [row.verdict for row in life.rows.drift] == [verdict]


def test_the_health_of_the_group_has_the_newest_verdict() -> None:
    life = Life()
    (health,) = life.take(*read(FIRST), observation(15)).group_health
    assert (health.verdict, health.verdict_reason) == ("identical", None)
    health = life.take(*read([*gone("a"), epoch(2)], 15), observation(19)).group_health[-1]
    assert (health.verdict, health.verdict_reason) == ("not_applicable", "the group is empty")


def test_a_target_is_judged_with_what_a_static_member_had_under_its_id_before() -> None:
    back = [*gone("a"), metadata("a2", "i"), target("a2", 0, 1, 2, 3)]
    second = verdicts(*FIRST, *back, *SECOND_JOINS, target("a2", 0, 1), target("b", 2, 3), stands(2))[-1]
    assert second.verdict == "identical"


def brokers(strategy: str, release: str) -> Assignor:
    """The broker's own assignor, applied to the coordinator's own view of the group."""

    def assignor(group: Coordinator) -> Owned:
        members = tuple(
            ServerMember(name, ("t",), ((TOPIC_ID, before),) if (before := group.targets.get(name)) else (), instance)
            for name, instance in group.members.items()
        )
        result = assign_on_server(strategy, ServerGroup(members, {"t": ServerTopic(TOPIC_ID, PARTITIONS)}), release)
        return {name: tuple(sorted(result.get(name, {}).get(TOPIC_ID, ()))) for name in group.members}

    return assignor


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([(name, release) for name in known_server_strategies() for release in ("4.0.0", "4.3.1")]),
    st.data(),
)
def test_whatever_happens_to_a_group_the_targets_of_the_brokers_assignors_are_identical(
    assignor: tuple[str, str], data: st.DataObject
) -> None:
    life = data.draw(lives(brokers(*assignor)))
    core = Life.after(*read(life.log))
    topic = make_topic("t", PARTITIONS, topic_id=TOPIC_ID)
    rows = core.take(make_observation(10 + len(life.log), topic, state=None, group_type="consumer")).drift
    judged = [row for row in rows if row.verdict != "not_applicable"]
    # A group first seen with several members may have an unknown past, until its second decision.
    assert {row.verdict for row in judged if row.matching_library} <= {"identical"}
    assert {row.reason for row in judged if not row.matching_library} <= {
        "the previous target is not known: earlier records of the group may be missing"
    }
    recompute_all(core.rows)


def test_members_whose_order_in_the_coordinator_s_map_is_not_reproduced_leave_the_reason() -> None:
    # The names Aa and BB have one hash code in Java, so these sixteen members share one bucket.
    names = ["".join(parts) for parts in product(("Aa", "BB"), repeat=4)]
    first = [metadata(names[0]), epoch(1), target(names[0], 0, 1, 2, 3), stands(1)]
    targets = [target(name, *range(at, at + (at < PARTITIONS))) for at, name in enumerate(names)]
    life = Life.after(*read([*first, *map(metadata, names[1:]), epoch(2), *targets, stands(2)]), observation(100))
    row = life.rows.drift[-1]
    assert row.verdict == "unverified"
    assert row.reason is not None
    assert "more than eight keys" in row.reason

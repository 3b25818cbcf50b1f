"""Modern groups in the core: one churn row per decision, topic names from rounds, the same rows at every cut."""

from __future__ import annotations

import pytest

from streaming.groups.rows import Finding, ReplacedMember, TopicAssignment
from streaming.records import ModernMember
from tests.groups.build import GROUP, SECOND, START, Life, make_observation, make_topic
from tests.groups.coordinator import TOPIC, Written
from tests.groups.modern_log import (
    FIRST,
    SECOND_MEMBER,
    TOPIC_ID,
    epoch,
    gone,
    metadata,
    observation,
    owns,
    read,
    stands,
    target,
)
from tests.offsets_log.written import current_assignment, offset_key, offset_value, other_key


def test_each_new_target_counts_as_a_rebalance() -> None:
    life = Life.after(*read(FIRST + SECOND_MEMBER))
    assert life.state.rebalances.recent == [START + 13 * SECOND, START + 19 * SECOND]


def test_a_decision_is_a_row_of_churn_with_its_moves() -> None:
    life = Life.after(*read(FIRST + SECOND_MEMBER))
    first, second = life.rows.rebalance_churn
    assert (first.kind, first.decision, first.generation, first.previous_generation) == ("rebalance", 13, 1, None)
    assert (first.joined, first.left, first.partitions_moved, first.members, first.partitions) == (("a",), (), 0, 1, 4)
    assert (second.decision, second.generation, second.previous_generation) == (19, 2, 1)
    assert (second.joined, second.partitions_moved, second.partitions, second.strategy) == (("b",), 2, 4, "uniform")
    assert first.incarnation == second.incarnation == 13
    assert second.protocol_type == "consumer"


def test_members_are_told_at_the_next_round_with_the_names_of_their_topics() -> None:
    life = Life()
    assert life.take(*read(FIRST)).members == []
    (row,) = life.take(observation(15)).members
    assert (row.member_id, row.decision, row.generation, row.ended) == ("a", 13, 1, False)
    assert (row.group_instance_id, row.client_id, row.subscription) == ("i", "client", ("orders",))
    assert (row.partition_count, row.partitions) == (4, (TopicAssignment("orders", (0, 1, 2, 3)),))
    assert (row.leader, row.session_timeout_ms) == (False, None)
    assert row.undecodable is None
    rows = life.take(*read([*gone("a"), epoch(2)], 15), observation(19)).members
    assert [(row.member_id, row.ended, row.decision) for row in rows] == [("a", True, 18)]


def test_a_topic_that_no_round_names_leaves_the_partitions_open_with_the_reason() -> None:
    life = Life()
    (row,) = life.take(*read(FIRST), make_observation(15, make_topic("orders", 4, topic_id=None))).members
    assert (row.partition_count, row.partitions) == (4, None)
    assert row.undecodable == f"no round has named the topic with id {TOPIC_ID}"


def test_members_of_a_group_that_is_met_in_the_middle_of_its_life_are_told_from_when_they_joined() -> None:
    # More decisions than can wait for the next round, the first of them only partly known.
    joining = [(metadata(f"b{n}"), epoch(n), target(f"b{n}"), stands(n)) for n in range(2, 72)]
    inputs = read([*FIRST[3:], *(record for of in joining for record in of)])
    joined = {item.member_id: item.record for item in inputs if isinstance(item, ModernMember)}
    life = Life.after(*inputs, observation(500))
    told: dict[str, int] = {}
    for row in life.rows.members:
        told.setdefault(row.member_id, row.decision)
    assert told == {name: record + 3 for name, record in joined.items()}
    assert not any(row.ended for row in life.rows.members)


def test_members_behind_the_target_are_a_finding_until_the_last_has_reached_it() -> None:
    life = Life.after(*read(FIRST), observation(15))
    rows = life.take(*read([*SECOND_MEMBER, owns("a", 2, 0, 1)], 15), observation(21))
    (health,) = rows.group_health
    assert health.findings == (
        Finding("reconciling", START + 19 * SECOND, "1 of 2 members have not reached epoch 2: b"),
    )
    assert (health.state, health.members, health.generation, health.assigned_partitions) == ("Reconciling", 2, 2, 2)
    assert (health.last_decision_time, health.strategy) == (START + 19 * SECOND, "uniform")
    (health,) = life.take(*read([owns("b", 2, 2, 3)], 21), observation(22)).group_health
    assert (health.findings, health.state, health.assigned_partitions) == ((), "Stable", 4)


def test_the_end_of_the_group_closes_its_members_once() -> None:
    life = Life.after(*read(FIRST), observation(15))
    tombstones = [*gone("a"), (other_key(6, GROUP), None), (other_key(3, GROUP), None)]
    rows = life.take(*read(tombstones, 15))
    assert [(row.member_id, row.ended, row.decision) for row in rows.members] == [("a", True, 19)]
    assert life.take(observation(30, gone="deleted")).members == []
    assert life.state is None


def test_lag_names_the_owner_at_present_and_every_partition_that_is_subscribed() -> None:
    life = Life()
    commit = offset_key(GROUP, "orders", 0), offset_value(4, 7)
    rows = life.take(*read([*FIRST, commit]), observation(16)).lag
    assert [(row.partition, row.member_id, row.client_id, row.subscribed) for row in rows] == [
        (partition, "a", "client", True) for partition in range(4)
    ]
    moving = [
        *SECOND_MEMBER,
        (other_key(8, GROUP, "a"), current_assignment(1, {TOPIC: [0, 1]}, state=1, revoking={TOPIC: [2, 3]})),
    ]
    assert life.take(*read(moving, 16), observation(22)).lag == []
    rows = life.take(*read([owns("a", 2, 0, 1), owns("b", 2, 2, 3)], 22), observation(24)).lag
    assert [(row.partition, row.member_id) for row in rows] == [(2, "b"), (3, "b")]


def test_a_static_member_that_comes_back_without_a_decision_is_shown_under_its_new_id() -> None:
    # `GroupMetadataManager.replaceMember`: with the same subscription the epoch does not change.
    life = Life.after(*read(FIRST), observation(20))
    returned = [*gone("a"), metadata("a2", "i"), target("a2", 0, 1, 2, 3), owns("a2", 1, 0, 1, 2, 3)]
    rows = life.take(*read(returned, 30), observation(40))
    assert [(row.member_id, row.ended, row.decision, row.group_instance_id) for row in rows.members] == [
        ("a", True, 33, "i"),
        ("a2", False, 33, "i"),
    ]
    assert rows.members[1].partition_count == 4
    assert rows.members[1].subscription == ("orders",)
    assert (rows.rebalance_churn, rows.drift) == ([], [])
    assert life.take(observation(50)).members == []
    # The next decision has it, and the end of the group closes it.
    joined = [metadata("b"), epoch(2), target("a2", 0, 1), target("b", 2, 3), stands(2)]
    rows = life.take(*read(joined, 60), observation(70))
    assert [row.replaced for row in rows.rebalance_churn] == [(ReplacedMember("i", "a", "a2"),)]
    assert [(row.member_id, row.ended) for row in rows.members] == [("a2", False), ("b", False)]


def test_a_static_member_that_comes_back_twice_between_two_rounds_is_shown_once() -> None:
    life = Life.after(*read(FIRST), observation(20))
    again = [*gone("a"), metadata("a2", "i"), target("a2", 0), *gone("a2"), metadata("a3", "i"), target("a3", 0)]
    rows = life.take(*read(again, 30), observation(60))
    assert [(row.member_id, row.ended) for row in rows.members] == [("a", True), ("a3", False)]
    life.take(observation(61, gone="deleted"))
    assert [(row.member_id, row.ended) for row in life.rows.members[-1:]] == [("a3", True)]


NO_TARGET = "no target assignment of the group has been read yet"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param(
            [epoch(5)], ("Empty", 5, "not_applicable", "the group is empty"), id="the first record shows it empty"
        ),
        # Until a newer one.
        pytest.param([*FIRST, *gone("a")], ("Empty", 1, "identical", None), id="it is empty after a decision"),
        pytest.param(
            [metadata("a"), epoch(5)], ("Assigning", None, "pending", NO_TARGET), id="a member waits for a target"
        ),
        pytest.param(
            [metadata("a"), epoch(1), stands(1)],
            (
                "Reconciling",
                1,
                "unverified",
                "the previous target is not known: earlier records of the group may be missing",
            ),
            id="a target without partitions is one",
        ),
    ],
)
def test_what_stands_of_a_group_follows_from_the_records_so_far(
    log: list[Written], expected: tuple[str, int | None, str, str | None]
) -> None:
    row = Life().take(*read(log), observation(10 + len(log))).group_health[-1]
    assert (row.state, row.generation, row.verdict, row.verdict_reason, row.drifted_count) == (*expected, 0)


@pytest.mark.parametrize("between", [False, True], ids=["no round between", "a round between"])
def test_a_new_group_that_has_not_decided_yet_has_no_verdict_of_the_deleted_one_of_its_name(between: bool) -> None:
    twice = [metadata("a"), epoch(1), target("a", 0, 1, 2, 3), stands(1), owns("a", 1, 0, 1, 2, 3)]
    twice += [metadata("b"), epoch(2), target("b", 0, 1), stands(2)]
    end = [*gone("a"), *((other_key(kind, GROUP, *of), None) for kind, *of in ((7, "a"), (6,), (3,)))]
    log = [*twice, *end, metadata("c"), epoch(1)]
    cut = 10 + len(twice) + len(end)
    life = Life()
    inputs = read(log)
    life.take(*(one for one in inputs if one.position < cut), *([observation(cut)] if between else []))
    life.take(*(one for one in inputs if one.position >= cut), observation(10 + len(log)))
    assert [row.verdict for row in life.rows.drift] == ["identical", "drifted"]
    health = life.rows.group_health[-1]
    assert (health.members, health.verdict, health.drifted_count, health.imbalance) == (1, "pending", 0, None)

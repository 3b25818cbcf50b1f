"""KIP-848 groups whose log is not read: what the coordinator's answers tell of their epochs and targets."""

from __future__ import annotations

from operator import attrgetter

import pytest

from streaming.records import GroupObservation, SeenCommits, SeenMember, SeenModern, TopicObservation
from tests.groups.build import (
    SECOND,
    START,
    Life,
    even,
    make_look,
    make_topic,
)
from tests.groups.seen.looks import BROKERED, OTHER_ID, TOPIC_ID, X, broker, classic, last, member


def test_epochs_number_the_decisions_of_a_broker() -> None:
    life = Life.after(
        broker(1, 2, member("a", 0, 1, epoch=2)), broker(3, 3, member("a", 0, epoch=3), member("b", 1, epoch=3))
    )
    rows = [
        (
            row.decision,
            row.generation,
            row.previous_generation,
            row.generations_skipped,
            row.joined,
            row.partitions_moved,
        )
        for row in life.rows.rebalance_churn
    ]
    assert rows == [(1, 2, None, None, None, None), (3, 3, 2, 0, ("b",), 1)]
    assert {row.strategy for row in life.rows.rebalance_churn} == {"uniform"}
    assert [verdict.verdict for verdict in life.rows.drift] == ["unverified", "identical"]
    health = life.rows.group_health[-1]
    assert (health.source, health.generation, health.members, health.assigned_partitions) == ("admin", 3, 2, 2)


# Kafka's hash codes of these ids are 2 and 18: they share a bucket of a HashMap, so its order is that of insertion.
TWO, EIGHTEEN = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAEg"


@pytest.mark.parametrize("kept", [{TWO: (0, 1), EIGHTEEN: (0, 1)}, {EIGHTEEN: (0, 1, 2, 3)}])
def test_topics_that_share_a_bucket_may_have_stood_in_either_order_in_the_target_before(
    kept: dict[str, tuple[int, ...]],
) -> None:
    counts = {TWO: 2, EIGHTEEN: 6}
    topics = [make_topic(name, counts[of], end=100, topic_id=of) for name, of in (("w", TWO), ("x", EIGHTEEN))]

    def takes(name: str, partitions: dict[str, tuple[int, ...]], epoch: int) -> SeenMember:
        target = tuple(sorted(partitions.items()))  # as the probe lists it
        return SeenMember(name, epoch, name, "/10.0.0.1", None, None, ("w", "x"), None, target, target, None)

    def looked(number: int, epoch: int, *members: SeenMember) -> GroupObservation:
        told = SeenModern(epoch, epoch, "uniform", members)
        return make_look(number, *topics, modern=told, group_type="consumer", state="Stable")

    every = {of: tuple(range(count)) for of, count in counts.items()}
    given = {of: tuple(n for n in numbers if n not in kept.get(of, ())) for of, numbers in every.items()}
    life = Life.after(looked(1, 2, takes("a", every, 2)))
    # The member gives away what stands last: of the four that it keeps, all are of one topic, or two of each.
    life.take(looked(3, 3, takes("a", kept, 3), takes("b", {of: n for of, n in given.items() if n}, 3)))
    assert [verdict.verdict for verdict in life.rows.drift] == ["unverified", "identical"]


def test_epochs_between_two_looks_are_counted_and_leave_the_target_unverified() -> None:
    life = Life.after(
        broker(1, 2, member("a", 0, 1, epoch=2)), broker(3, 5, member("a", 0, epoch=5), member("b", 1, epoch=5))
    )
    assert life.rows.rebalance_churn[-1].generations_skipped == 2
    assert life.rows.drift[-1].reason == "2 epochs passed between two looks: the previous target is not known"


def test_a_target_that_is_being_computed_waits_for_the_next_look() -> None:
    life = Life.after(
        broker(1, 2, member("a", 0, 1, epoch=2)),
        broker(3, 3, member("a", 0, 1, epoch=2), member("b", epoch=3), assigned=2),
    )
    assert len(life.rows.rebalance_churn) == 1
    assert life.rows.group_health[-1].members == 1
    life.take(broker(5, 3, member("a", 0, epoch=3), member("b", 1, epoch=3)))
    assert (last(life).decision, last(life).decided_time_min) == (5, START + 3 * SECOND)


def test_members_that_have_not_reached_the_target_are_reconciling() -> None:
    life = Life.after(
        broker(1, 2, member("a", 0, 1, epoch=2)),
        broker(3, 3, member("a", 0, epoch=2, owned=(0, 1)), member("b", 1, epoch=3, owned=())),
    )
    assert {finding.finding for finding in life.rows.group_health[-1].findings} == {"reconciling"}
    owners = {row.partition: row.member_id for row in life.rows.lag}
    assert owners == {0: "a", 1: "a"}  # not b's before b owns it


def test_a_broker_group_becomes_empty_with_its_epoch() -> None:
    life = Life.after(broker(1, 2, member("a", 0, 1, epoch=2)), broker(3, 3))
    assert (last(life).kind, last(life).generation, last(life).left) == ("became_empty", 3, ("a",))
    assert life.rows.group_health[-1].verdict_reason == "the group is empty"


def test_an_upgrade_and_a_downgrade_are_migrations() -> None:
    life = Life.after(
        make_look(1, BROKERED, classic=classic(*even("x", 2, "a", "b"))),
        broker(3, 6, member("a", 0, epoch=6), member("b", 1, epoch=6)),
    )
    assert (last(life).kind, last(life).partitions_moved, last(life).previous_generation) == ("migration", 0, None)
    life.take(make_look(5, BROKERED, classic=classic(*even("x", 2, "a", "b"))))
    assert (last(life).kind, last(life).incarnation) == ("migration", 1)
    newest = {row.member_id: row for row in life.rows.members}
    assert {name: (row.decision, row.ended) for name, row in newest.items()} == {"a": (5, False), "b": (5, False)}


def test_what_a_member_that_left_owned_belongs_to_nobody_until_it_is_given_to_another_one() -> None:
    life = Life.after(
        broker(1, 2, member("a", 0, epoch=2), member("b", 1, epoch=2)),
        broker(3, 3, member("a", 0, 1, epoch=2, owned=(0,))),
    )
    assert {row.partition: row.member_id for row in life.rows.lag} == {0: "a", 1: None}


def test_a_group_whose_members_come_and_go_keeps_nothing_of_those_that_went() -> None:
    life = Life()
    for number in range(1, 21):
        life.take(broker(number, number, member(f"member-{number}", 0, 1, epoch=number)))
    group = life.state.modern.group
    assert set(group.members) == set(group.targets) == set(group.currents) == {"member-20"}


def test_a_look_that_a_broker_did_not_answer_changes_nothing_of_its_group() -> None:
    life = Life.after(
        broker(1, 2, member("a", 0, 1, epoch=2)),
        make_look(3, BROKERED, group_type="consumer"),
        broker(5, 2, member("a", 0, 1, epoch=2)),
    )
    assert len(life.rows.rebalance_churn) == 1
    assert [(row.member_id, row.ended) for row in life.rows.members] == [("a", False)]


def test_a_broker_s_group_too_large_to_tell_is_counted_and_unverified_until_it_can_be_told_again() -> None:
    life = Life.after(broker(1, 2, member("a", 0, 1, epoch=2)))
    large = SeenModern(3, 3, "uniform", (), more=5_000)
    life.take(make_look(3, BROKERED, modern=large, group_type="consumer", state="Stable"))
    row = life.rows.group_health[-1]
    assert (row.members, row.verdict) == (5_000, "unverified")
    assert "5,000 members" in (row.verdict_reason or "")
    assert [(m.member_id, m.ended) for m in life.rows.members] == [("a", False), ("a", True)]
    life.take(broker(5, 4, member("a", 0, 1, epoch=4)))
    row = life.rows.group_health[-1]
    assert row.members == 1
    assert "5,000 members" not in (row.verdict_reason or "")


FIRST, SECOND_ONE = make_topic("x", 1, end=100, topic_id=TOPIC_ID), make_topic("x", 1, end=9, topic_id=OTHER_ID)


def offsets(
    number: int, *committed: tuple[int, int], whole: bool = False, topic: TopicObservation = X
) -> GroupObservation:
    """A look at an empty group that shows committed offsets by partition: all of them, or those that moved."""
    told = SeenCommits(whole, {"x": committed} if committed else {})
    return make_look(number, topic, state="Empty", commits=told)


# Looks, columns, and their values in all rows of lag.
OFFSETS: dict[str, tuple[list[GroupObservation], str, list[tuple[object, ...]]]] = {
    "offsets that moved are lag without commits": (
        [offsets(1, (0, 10), (1, 90), whole=True), offsets(3, (0, 60)), offsets(5, (0, 40), (1, -1))],
        "round partition committed_offset lag commits rewound_by offset_deleted last_commit_time",
        [
            (1, 0, 10, 90, None, 0, False, None),
            (1, 1, 90, 10, None, 0, False, None),
            (3, 0, 60, 40, None, 0, False, None),
            (5, 0, 40, 60, None, 20, False, None),
            (5, 1, None, None, None, 0, True, None),
        ],
    ),
    "those missing from all of them are gone, and equal ones are no news": (
        [
            *(offsets(number, (0, 10), (1, 90), whole=True) for number in (1, 3)),
            offsets(5, (0, 10), whole=True),
        ],
        "round partition ended",
        [(1, 0, False), (1, 1, False), (5, 1, True)],
    ),
    "offset zero is an offset": (
        [offsets(1, (0, 0), (1, 0), whole=True), offsets(3, (0, -1)), offsets(5, whole=True)],
        "round partition committed_offset lag offset_deleted",
        [(1, 0, 0, 100, False), (1, 1, 0, 100, False), (3, 0, None, None, True), (5, 1, None, None, True)],
    ),
    "a step back to offset zero is no deletion": (
        [offsets(1, (0, 5), whole=True), offsets(3, (0, 0))],
        "round committed_offset rewound_by offset_deleted",
        [(1, 5, 0, False), (3, 0, 5, False)],
    ),
    "that of a new topic of the name is no step back": (
        [
            *(offsets(1, (0, 90), whole=True, topic=FIRST), offsets(3, (0, 5), topic=SECOND_ONE)),
            offsets(5, (0, 7), topic=SECOND_ONE),
        ],
        "round committed_offset rewound_by lag reason",
        [(1, 90, 0, 10, None), (3, 5, 0, None, "topic_recreated"), (5, 7, 0, 2, None)],
    ),
}


@pytest.mark.parametrize("case", OFFSETS)
def test_offsets_are_told_as_looks_show_them(case: str) -> None:
    looks, columns, expected = OFFSETS[case]
    life = Life()
    for look in looks:
        life.take(look)
    assert list(map(attrgetter(*columns.split()), life.rows.lag)) == expected
    assert {row.commits for row in life.rows.group_health} == {None}


def test_a_group_with_lag_whose_offset_stands_still_is_stopped_by_rounds_of_its_own_rhythm() -> None:
    life = Life()
    for number in range(10, 410, 10):
        moved = SeenCommits(False, {"x": ((0, number),)}) if number <= 200 else None
        topic = make_topic("x", 1, end=number + 5)
        life.take(make_look(number, topic, state="Empty", commits=moved, elapsed=number * SECOND))
    statuses = {row.round: row.lag_status for row in life.rows.lag}
    assert statuses[200] == "ok"
    assert statuses[400] == "stopped"

"""Verdicts and partition counts: those the leader may have known, those of the rounds, and their times."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups import GroupConfig
from streaming.groups.rows import DriftedPartition
from streaming.records import GroupInput, GroupObservation
from tests.groups.build import (
    MINUTE,
    SECOND,
    START,
    Life,
    declared,
    even,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)
from tests.groups.verdicts import KAFKA_PYTHON, recompute_all, verdict_of


def long(*topics: tuple[str, int]) -> list[GroupInput]:
    """Rounds that show these topics for longer than the grace period, up to record 2000."""
    return [make_observation(at, *(make_topic(topic, count) for topic, count in topics)) for at in (1, 1990)]


def shows(position: int, *counts: int | None, **changes: Any) -> GroupInput:
    """A round that shows x, and y if there is a second count."""
    topics = zip(("x", "y"), counts, strict=False)
    return make_observation(position, *(make_topic(topic, count, **changes) for topic, count in topics))


def on_two(record: int, partitions: int = 2, **changes: Any) -> GroupInput:
    return make_record(record, even("x", partitions, "a", "b"), **changes)


def lacking(own: tuple[str, ...], **client: Any) -> list[GroupInput]:
    """A leader that subscribes to these topics gives nothing of y, to which the other member subscribes."""
    members = make_member("a", own, {"x": (0, 1)}, **client), make_member("b", ("y",), {}, **client)
    return [*long(("x", 2), ("y", 2)), make_record(2000, members), shows(2005, 2, 2)]


GROWN = [make_record(5, even("x", 3, "a", "b")), *(shows(at, 3) for at in (10, 1_500, 2_750))]
OWNS_FAR = make_record(5, (make_member("a", ("x",), {"x": (2**31 - 2,)}),))
NOT_THERE = make_record(5, (make_member("a", ("x", "y"), {"x": (0,)}),))
NOT_SHOWN = "no round has shown topic 'x': its partition count is not known"
UNSEEN = "it fits a partition count of topic 'x' that no round has seen (2; seen: 4)"
LACKED = "it fits a leader that did not have the metadata of topic 'y' yet"
NO_SUCH = "members own partitions that do not exist"


@pytest.mark.parametrize(
    ("inputs", "verdicts", "reason"),
    [
        # Two more partitions, which the leader has not seen.
        pytest.param(
            [*long(("x", 2)), shows(1995, 4), on_two(2000), shows(2005, 4)], ["2000 at 2005: identical"], None
        ),
        pytest.param(
            [*long(("x", 2)), on_two(2000, 4), shows(2005, 4)],
            ["2000 at 2005: identical"],
            None,
            id="a leader that knows new partitions before the round does",
        ),
        pytest.param(
            [*long(("x", 2)), on_two(2000, 4), shows(2005, 2), shows(2015, 4)],
            ["2000 at 2015: identical"],
            None,
            id="a leader ahead of the probe's broker waits for the next round",
        ),
        pytest.param(
            [*long(("x", 2)), on_two(2000, 4), shows(2005, 2), shows(2600, 2)],
            ["2000 at 2600: drifted"],
            NO_SUCH,
            id="a partition that no round shows within grace is drifted",
        ),
        pytest.param(
            [
                *(*long(("x", 4)), on_two(2000, 6)),
                *(shows(2005, 2, topic_id="another"), shows(2700, 2, topic_id="another")),
            ],
            ["2000 at 2700: unverified"],
            None,
            id="a count beyond all rounds of a topic that was made again",
        ),
        pytest.param(
            [on_two(5), shows(10, 4)],
            ["5 at 10: unverified"],
            UNSEEN,
            id="a fitting count that no round has seen while the rounds are young",
        ),
        *(
            pytest.param(
                [*long(("x", 2)), on_two(2000, 4), shows(2005, 2), make_observation(closed, gone="deleted")],
                [f"2000 at {closed}: {verdict}"],
                reason,
                id=f"the closing of a group at {closed} judges by its own time whether grace is over",
            )
            for closed, verdict, reason in (
                (2599, "unverified", "it fits a partition count of topic 'x' that no round has seen (4; seen: 2)"),
                (2600, "drifted", NO_SUCH),
            )
        ),
        pytest.param([on_two(5), shows(5, 2)], [], None, id="pending until a round beyond its record"),
        pytest.param([on_two(5), shows(5, 2), shows(6, 2)], ["5 at 6: identical"], None, id="a round beyond it"),
        pytest.param(
            [on_two(5), shows(10), shows(20), shows(30, 2)],
            ["5 at 30: identical"],
            None,
            id="pending while a subscribed topic has not been shown",
        ),
        pytest.param(
            [on_two(5), shows(10), shows(605)],
            ["5 at 605: unverified"],
            NOT_SHOWN,
            id="a topic that is never shown leaves the decision unverified after the grace",
        ),
        pytest.param([NOT_THERE, shows(10, 1, None)], ["5 at 10: identical"], None, id="a topic that does not exist"),
        pytest.param(
            [make_record(5, even("unseen", 2, "a", "b")), on_two(6, generation=2), shows(10, 2)],
            ["5 at 10: unverified", "6 at 10: identical"],
            None,
            id="a later verdict ends the waiting of earlier decisions",
        ),
        pytest.param(
            [OWNS_FAR, shows(10, 2), shows(1000, 2)],
            ["5 at 1000: unverified"],
            None,
            id="partition numbers that no topic has are not recomputed",
        ),
        pytest.param([on_two(5, time=2**62), shows(10, 2)], ["5 at 10: unverified"], None, id="a record of the future"),
        *(
            pytest.param(
                [shows(3, 2), on_two(5, time=START + 10 * SECOND + ahead), shows(10, 2)],
                [f"5 at 10: {verdict}"],
                None,
                id=f"a record is from the future if its time is more than the grace after the round: {ahead}",
            )
            for ahead, verdict in ((10 * MINUTE, "identical"), (10 * MINUTE + 1, "unverified"))
        ),
        pytest.param(
            [*(on_two(generation, generation=generation) for generation in range(1, 71)), shows(100, 2)],
            [f"{n} at 100: identical" for n in range(7, 71)],
            None,
            id="after too many decisions without a round only the newest are judged",
        ),
        # The topic grew at 2755. The leader's metadata at 3005 is of 2750, and its record's time is wrong by `ahead`.
        *(
            pytest.param(
                [
                    *(*GROWN, *(shows(at, 6) for at in (2_760, 2_900, 2_990))),
                    make_record(
                        3_005, even("x", 3, "a", "b", "c"), generation=2, time=START + (3_005 + ahead) * SECOND
                    ),
                    shows(3_010, 6),
                ],
                ["5 at 10: identical", "3005 at 3010: identical"],
                None,
                id=f"a leader may have old metadata also where its coordinator's clock is ahead by {ahead}",
            )
            for ahead in (0, 480, 590)
        ),
        # The topic grows at 3003; the leader knows that at 3005, the probe's broker only after the round at 3010.
        *(
            pytest.param(
                [
                    *(*GROWN[:3], shows(3_000, 3)),
                    on_two(3_005, 6, generation=2, time=START + (3_005 - behind) * SECOND),
                    *(shows(3_010, 3), shows(3_020, 6)),
                ],
                ["5 at 10: identical", "3005 at 3020: identical"],
                None,
                id=f"a leader may know partitions before the rounds do also where its clock is behind by {behind}",
            )
            for behind in (0, 900)
        ),
        pytest.param(
            [on_two(5), shows(10), make_tombstone(12), make_observation(20, gone="deleted")],
            ["5 at 20: unverified"],
            NOT_SHOWN,
            id="a deleted group's last decision still gets its verdict",
        ),
        # kafka-python assigns without waiting for metadata, so y stays unassigned. Java waits for an answer, but is
        # satisfied with the answer to an earlier request.
        *(
            pytest.param(
                lacking(own, **client),
                [f"2000 at 2005: {verdict}"],
                reason,
                id=f"a leader that subscribes to {'+'.join(own)} lacked a topic: {verdict}",
            )
            for own in (("x",), ("x", "y"))
            for client, verdict, reason in ((KAFKA_PYTHON, "identical", None), ({}, "unverified", LACKED))
        ),
        pytest.param(
            [*long(("x", 2)), on_two(2000, 4), shows(2005, 6)],
            ["2000 at 2005: unverified"],
            None,
            id="a count between two that were seen may have been in force between two rounds",
        ),
    ],
)
def test_a_leader_is_judged_by_the_counts_that_it_may_have_known(
    inputs: list[GroupInput], verdicts: list[str], reason: str | None
) -> None:
    life = Life.after(*inputs)
    recompute_all(life.rows)
    assert [f"{row.decision} at {row.round}: {row.verdict}" for row in life.rows.drift] == verdicts
    if reason is not None:
        assert life.rows.drift[-1].reason == reason
    if life.state is not None:
        assert life.rows.group_health[-1].verdict == (life.rows.drift[-1].verdict if verdicts else "pending")


def test_partitions_that_do_not_exist_and_those_that_a_late_leader_leaves_out_are_named() -> None:
    (row,) = Life.after(*long(("x", 2)), on_two(2000, 4), shows(2005, 2), shows(2600, 2)).rows.drift
    assert row.drifted_partitions == tuple(DriftedPartition("x", n, "misplaced", None, ("b",)) for n in (2, 3))
    life = Life(configured=declared("java"))
    life.take(*long(("x", 2)), shows(2000, 4), shows(2695, 4), on_two(2700), shows(2705, 4))
    row = verdict_of(life)
    # a should have 0 and 1, b 2 and 3; a has 0, b has 1.
    assert row.verdict == "drifted"
    assert row.drifted_partitions == (
        DriftedPartition("x", 1, "misplaced", "a", ("b",)),
        DriftedPartition("x", 2, "unassigned", "b", ()),
        DriftedPartition("x", 3, "unassigned", "b", ()),
    )


def test_a_topic_outside_the_filters_is_not_waited_for() -> None:
    life = Life(GroupConfig(cluster="test", watches_topic=lambda topic: topic != "x"))
    life.take(on_two(5), make_observation(10))
    assert verdict_of(life).verdict == "unverified"
    assert "excluded by the filters" in str(verdict_of(life).reason)


def test_the_round_before_a_waiting_decision_moves_with_a_clock_that_is_set_right() -> None:
    life = Life()

    def round_at(second: int, ahead: int = 0) -> GroupObservation:
        return make_observation(
            second, make_topic("x", 3), time=START + (second + ahead) * SECOND, elapsed=second * SECOND
        )

    # The clock of the rounds was an hour ahead when the group was met, and is set right after the decision.
    life.take(make_record(5, even("x", 3, "a", "b")), round_at(10, ahead=3_600))
    life.take(make_record(15, even("x", 6, "a", "b"), generation=2), round_at(20), round_at(30))
    [waiting] = life.state.classic.waiting
    assert waiting.after_round == START + 10 * SECOND

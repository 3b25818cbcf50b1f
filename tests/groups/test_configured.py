"""Verdicts against the strategy that the settings name, and settings that change while a group lives."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from streaming.groups.rows import DriftedPartition
from streaming.records import Configured, GroupInput, GroupObservation, Member
from tests.groups.build import (
    Life,
    counted,
    even,
    make_member,
    make_observation,
    make_record,
    make_topic,
    rows_in_batches,
)
from tests.groups.modern_log import FIRST, SECOND_JOINS, observation, read, stands, target

STICKY = Configured("v1", "sticky")
X = make_topic("x", 4)


def test_a_group_that_runs_another_strategy_is_compared_with_what_the_configured_one_gives() -> None:
    # By hand: round robin deals x-0 to a, x-1 to b, x-2 to a, x-3 to b; range gave each two neighbours.
    life = Life(configured=Configured("v7", "roundrobin"))
    life.take(make_record(5, even("x", 4, "a", "b")), make_observation(10, X))
    (row,) = life.rows.drift
    assert (row.verdict, row.basis, row.own_verdict) == ("drifted", "configured", "identical")
    assert (row.strategy, row.expected_strategy, row.strategy_mismatch) == ("range", "roundrobin", True)
    assert row.configuration_version == "v7"
    assert row.reason == "the group runs range, and roundrobin is configured"
    assert row.drifted_partitions == (
        DriftedPartition("x", 1, "misplaced", "b", ("a",)),
        DriftedPartition("x", 2, "misplaced", "a", ("b",)),
    )
    health = life.rows.group_health[-1]
    assert (health.verdict, health.verdict_basis, health.drifted_count) == ("drifted", "configured", 2)


def test_ownership_for_a_configured_sticky_strategy_is_that_of_the_decision_before() -> None:
    # By hand: b had all four. Sticky leaves it two and gives the newcomer the others; range gives b the last two.
    life = Life(configured=STICKY)
    life.take(make_record(5, even("x", 4, "b")), make_observation(6, X))
    life.take(make_record(7, even("x", 4, "a", "b"), generation=2), make_observation(10, X))
    row = life.rows.drift[-1]
    assert (row.verdict, row.basis, row.own_verdict) == ("drifted", "configured", "identical")
    moved = {d.partition: (d.expected, d.actual) for d in row.drifted_partitions}
    assert moved == {0: ("b", ("a",)), 1: ("b", ("a",)), 2: ("a", ("b",)), 3: ("a", ("b",))}


EVEN = even("x", 4, "a", "b")
TWICE = make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("x",), {"x": (1, 2, 3)})
SWAPPED = make_member("a", ("x",), {"x": (0, 3)}), make_member("b", ("x",), {"x": (1, 2)})

# Settings, members of a decision, and its verdict, basis, own verdict and whether it runs another strategy.
JUDGED: dict[str, tuple[Configured, tuple[Member, ...], tuple[str, str | None, str, bool | None]]] = {
    "a group that runs the configured strategy has its own verdict": (
        Configured("v1", "range"),
        EVEN,
        ("identical", None, "identical", False),
    ),
    "two owners are graver than a strategy that nobody configured": (
        STICKY,
        TWICE,
        ("drifted", "invariant", "drifted", True),
    ),
    "an empty group runs no wrong strategy": (STICKY, (), ("not_applicable", None, "not_applicable", None)),
    "a declared library that this release does not know proves nothing": (
        Configured("v1", None, ("java", "a-library-of-2028")),
        SWAPPED,
        ("unverified", None, "unverified", None),
    ),
}


@pytest.mark.parametrize("case", JUDGED)
def test_the_gravest_of_what_is_configured_and_of_its_own_counts(case: str) -> None:
    configured, members, expected = JUDGED[case]
    life = Life(configured=configured)
    life.take(make_record(5, members), make_observation(10, X))
    (row,) = life.rows.drift
    assert (row.verdict, row.basis, row.own_verdict, row.strategy_mismatch) == expected


def test_a_configured_strategy_that_nobody_knows_is_a_mismatch_without_expected_owners() -> None:
    life = Life(configured=Configured("v1", "by-weight"))
    life.take(make_record(5, even("x", 4, "a", "b")), make_observation(10, X))
    (row,) = life.rows.drift
    assert (row.verdict, row.basis, row.drifted_partitions) == ("drifted", "configured", ())
    assert row.reason == (
        "the group runs range, and by-weight is configured; what that gives is not known: strategy 'by-weight' is not "
        "known"
    )


def test_the_table_of_what_ifs_marks_the_configured_strategy() -> None:
    life = Life(configured=STICKY)
    life.take(make_record(5, even("x", 4, "a", "b")), make_observation(10, X))
    assert {row.strategy: (row.runs, row.configured) for row in life.rows.what_if} == {
        "range": (True, False),
        "roundrobin": (False, False),
        "sticky": (False, True),
        "cooperative-sticky": (False, False),
    }
    # What the group did is still compared as what it runs.
    assert next(row.partitions_moved for row in life.rows.what_if if row.runs) is not None


def changing(*versions: Configured | None) -> list[GroupInput]:
    """A decision, and rounds that tell these settings, one after the other."""
    rounds = [make_observation(10 + 10 * at, X, configured=told) for at, told in enumerate(versions)]
    return [make_record(5, even("x", 4, "a", "b")), *rounds]


def verdicts(inputs: Sequence[GroupInput]) -> list[tuple[int, str, str | None, str | None]]:
    rows = rows_in_batches(inputs).drift
    return [(row.round, row.verdict, row.basis, row.configuration_version) for row in rows]


def test_a_change_of_the_settings_judges_the_newest_decision_once_more() -> None:
    wanted = Configured("v2", "roundrobin")
    assert verdicts(changing(None, None, wanted, wanted, Configured("v3", "range"), None)) == [
        (10, "identical", None, None),
        (30, "drifted", "configured", "v2"),
        (50, "identical", None, "v3"),
        (60, "identical", None, None),
    ]


def test_a_change_that_says_nothing_else_of_the_group_judges_nothing() -> None:
    assert len(verdicts(changing(Configured("v1", "range"), Configured("v2", "range")))) == 1


def test_a_declaration_turns_an_open_verdict_into_an_answer() -> None:
    inputs = [
        make_record(5, SWAPPED),
        make_observation(10, X),
        make_observation(20, X, configured=Configured("v1", None, ("java", "librdkafka"))),
    ]
    rows = rows_in_batches(inputs).drift
    assert [(row.verdict, row.basis, row.reason) for row in rows] == [
        ("unverified", None, "no known client gives this assignment"),
        ("drifted", "declared", "none of the declared clients gives this assignment"),
    ]
    assert [(row.nearest_differing, row.drifted_count) for row in rows] == [(2, 0), (2, 2)]


def test_an_unexplained_assignment_is_a_finding_and_no_drift() -> None:
    life = Life.after(make_record(5, SWAPPED), make_observation(10, X))
    assert [f.finding for f in life.rows.group_health[-1].findings] == ["unexplained_assignment"]
    life.take(make_record(15, even("x", 4, "a", "b"), generation=2), make_observation(20, X))
    assert life.rows.group_health[-1].findings == ()


@pytest.mark.parametrize("cut", range(1, 6))
def test_changes_of_the_settings_give_the_same_rows_at_every_cut(cut: int) -> None:
    inputs = changing(None, Configured("v2", "roundrobin"), Configured("v3", "sticky", ("java",)), None, STICKY)
    assert counted(rows_in_batches(inputs, (cut,))) == counted(rows_in_batches(inputs))


def configured_round(position: int, configured: Configured) -> GroupObservation:
    return msgspec.structs.replace(observation(position), configured=configured)


def test_a_broker_s_target_is_compared_with_the_configured_assignor() -> None:
    # By hand: the broker's range deals a the first two of the four partitions and b the others.
    log = read([*FIRST, *SECOND_JOINS, target("a", 2, 3), target("b", 0, 1), stands(2)])
    life = Life.after(*log, configured_round(30, Configured("v1", "range")))
    first, row = life.rows.drift
    assert (first.verdict, first.own_verdict, first.drifted_count) == ("drifted", "identical", 0)
    assert (row.verdict, row.basis, row.strategy) == ("drifted", "configured", "uniform")
    assert [(d.partition, d.expected, d.actual) for d in row.drifted_partitions] == [
        (0, "a", ("b",)), (1, "a", ("b",)), (2, "b", ("a",)), (3, "b", ("a",)),
    ]  # fmt: skip


def test_a_change_of_the_settings_judges_a_broker_s_target_once_more() -> None:
    life = Life.after(
        *read([*FIRST]),
        configured_round(30, Configured("v1", "uniform")),
        configured_round(40, Configured("v2", "range")),
        configured_round(50, Configured("v3", "uniform")),
    )
    assert [(row.round, row.verdict, row.own_verdict, row.configuration_version) for row in life.rows.drift] == [
        (30, "identical", "identical", "v1"),
        (40, "drifted", "identical", "v2"),
        (50, "identical", "identical", "v3"),
    ]

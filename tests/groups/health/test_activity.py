"""Findings about what members do not do: a rebalance that does not end, members that own nothing."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.records import GroupInput, Member
from tests.groups.build import (
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
    packed,
)
from tests.groups.health.findings import detail, found
from tests.groups.modern_log import FIRST, epoch, metadata, observation, owns, read, stands, target

# The rebalance timeout of `make_member`.
TIMEOUT_S = 300


def watched(*states: tuple[int, str], life: Life | None = None) -> Life:
    """A group of two, with rounds that show these states at these seconds."""
    if life is None:
        life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(10, make_topic("x", 2)))
    for at, state in states:
        life.take(make_observation(at, make_topic("x", 2), state=state))
    return life


PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
STUCK = [("stuck_rebalance", 20)]

# States that rounds show at these seconds, and the findings then.
STATES: dict[str, list[tuple[list[tuple[int, str]], list[tuple[str, int]]]]] = {
    "within the timeout": [([(20, PREPARING), (20 + TIMEOUT_S, PREPARING)], [])],
    "a second phase has a timeout of its own": [
        ([(20, PREPARING), (300, COMPLETING), (590, COMPLETING)], []),
        ([(601, COMPLETING)], STUCK),
    ],
    "one that begins again and again is stuck after three timeouts": [
        ([(at, (PREPARING, COMPLETING)[at // 100 % 2]) for at in range(20, 920, 100)], []),
        ([(921, PREPARING)], STUCK),
    ],
    "it ends with a round that shows another state": [
        ([(20, PREPARING), (400, PREPARING)], STUCK),
        ([(410, "Stable")], []),
        ([(420, PREPARING)], []),
    ],
}


@pytest.mark.parametrize("case", STATES)
def test_a_rebalance_is_stuck_after_the_timeouts_of_its_members(case: str) -> None:
    life = watched()
    for states, expected in STATES[case]:
        assert found(watched(*states, life=life)) == expected


@pytest.mark.parametrize(
    ("state", "task"), [(PREPARING, "join again"), (COMPLETING, "get their assignments from the leader")]
)
def test_a_stuck_rebalance_says_what_its_members_are_to_do(state: str, task: str) -> None:
    life = watched((20, state), (21 + TIMEOUT_S, state))
    assert found(life) == STUCK
    assert detail(life) == (
        f"{state}: the members of the last generation (2) have 300 s to {task}, and no generation has followed"
    )


def test_rebalances_that_end_between_the_rounds_are_not_one_that_lasts() -> None:
    life = watched((20, "PreparingRebalance"))
    for number, at in enumerate(range(100, 2_000, 100)):
        life.take(make_record(at, even("x", 2, "a", "b"), generation=2 + number))
        watched((at + 10, "PreparingRebalance"), life=life)
        assert found(life) == []


def test_while_the_log_is_blocked_a_rebalance_that_was_stuck_stays_so_and_is_watched_on() -> None:
    blocked = {"state": "PreparingRebalance", "held_since": START + 380 * SECOND}
    life = watched((20, "PreparingRebalance"), (370, "PreparingRebalance"))
    assert found(life) == [("stuck_rebalance", 20)]
    life.take(make_observation(390, make_topic("x", 2), **blocked))
    assert found(life) == [("offsets_blocked", 380), ("stuck_rebalance", 20)]
    assert found(watched((400, "PreparingRebalance"), life=life)) == [("stuck_rebalance", 20)]


def test_what_turns_out_to_have_been_one_rebalance_when_the_log_goes_on_is_stuck_at_once() -> None:
    blocked = {"state": "PreparingRebalance", "held_since": START + 30 * SECOND}
    life = watched((20, "PreparingRebalance"))
    life.take(make_observation(400, make_topic("x", 2), **blocked))
    assert [name for name, _ in found(life)] == ["offsets_blocked"]
    assert found(watched((410, "PreparingRebalance"), life=life)) == [("stuck_rebalance", 20)]


def test_of_a_first_rebalance_whose_timeouts_nobody_knows_nothing_is_said() -> None:
    life = Life()
    watched((20, "PreparingRebalance"), (20_000, "PreparingRebalance"), life=life)
    assert found(life) == []


def test_a_rebalance_before_an_outage_and_one_after_it_are_not_one_that_lasts() -> None:
    life = watched()
    for at, elapsed in ((20, 20), (3_620, 50), (3_630, 60)):
        life.take(make_observation(at, make_topic("x", 2), state="PreparingRebalance", elapsed=elapsed * SECOND))
    assert found(life) == []


@pytest.mark.parametrize(
    ("members", "topics", "expected"),
    [
        (
            even("x", 2, "a", "b", "c", "d"),
            {"x": 2},
            ("idle_members", "2 of 4 members own nothing, there are 2 partitions for 4 members: c, d"),
        ),
        # A strategy that leaves members idle is named.
        (
            (make_member("a", ("x", "y"), {"x": (0,), "y": (0,)}), make_member("b", ("x", "y"), {})),
            {"x": 1, "y": 1},
            ("idle_members", "1 of 2 members own nothing, range assigns 2 partitions for 2 members so: b"),
        ),
        # Members that subscribe to something else do not count as sharing.
        (
            (
                make_member("a", ("x",), {"x": (0,)}),
                make_member("b", ("x",), {}),
                make_member("c", ("y",), {"y": (0, 1, 2)}),
            ),
            {"x": 1, "y": 3},
            ("idle_members", "1 of 3 members own nothing, there is 1 partition for 2 members: b"),
        ),
        # Nobody is idle while the leader has not seen new partitions, or a topic is not visible.
        (
            even("x", 2, "a", "b", "c"),
            {"x": 3},
            ("stale_metadata", "new partitions that the leader has not seen: x (2 to 3 partitions)"),
        ),
        (
            (make_member("a", ("x",), {"x": (0,)}), make_member("b", ("y",), {})),
            {"x": 1},
            ("topic_not_visible", "subscribed, but not visible: y"),
        ),
        # Nor is who subscribes to nothing.
        ((make_member("a", ("x",), {"x": (0,)}), make_member("b", (), {})), {"x": 1}, None),
    ],
)
def test_members_that_own_nothing_are_idle_for_a_reason(
    members: tuple[Member, ...], topics: dict[str, int], expected: tuple[str, str] | None
) -> None:
    shown = [make_topic(topic, count) for topic, count in topics.items()]
    life = Life.after(make_record(5, members), make_observation(10, *shown))
    told = [(f.finding, f.detail) for f in life.rows.group_health[-1].findings if f.finding != "unexplained_assignment"]
    assert told == ([expected] if expected is not None else [])


def test_members_that_wait_for_a_handover_are_not_idle() -> None:
    life = Life()

    def generation(at: int, number: int, **owned: tuple[int, ...]) -> None:
        members = [make_member(name, ("x",), {"x": of} if of else {}) for name, of in owned.items()]
        record = make_record(at, members, generation=number, protocol="cooperative-sticky")
        life.take(record, make_observation(at + 1, make_topic("x", 3)))

    generation(5, 1, a=(0, 1, 2))
    generation(15, 2, a=(0, 1), b=())
    assert [name for name, _ in found(life)] == ["partitions_pending_handover"]
    generation(25, 3, a=(0, 1), b=(2,))
    assert found(life) == []


def test_a_member_that_the_broker_gives_nothing_is_idle_once_the_target_is_reached() -> None:
    life = Life.after(*read(FIRST), observation(15))
    second = [metadata("b"), epoch(2), target("a", 0, 1, 2, 3), target("b"), stands(2), owns("a", 2, 0, 1, 2, 3)]
    life.take(*read(second, 15), observation(21))
    assert [name for name, _ in found(life)] == ["reconciling"]
    life.take(*read([owns("b", 2)], 21), observation(22))
    assert found(life) == [("idle_members", 19)]
    assert detail(life) == "1 of 2 members own nothing, the broker assigns 4 partitions for 2 members so: b"


def consuming(*ends: tuple[int, int]) -> Life:
    """A group of two that owns x, with rounds that show these high watermarks at these seconds."""
    life = Life.after(make_record(5, even("x", 2, "a", "b")))
    for at, end in ends:
        life.take(make_observation(at, make_topic("x", 2, end=end)))
    return life


def test_members_that_own_partitions_where_records_arrive_and_commit_nothing_are_a_finding_after_ten_minutes() -> None:
    life = consuming((10, 100), (300, 150), (609, 200))
    assert found(life) == []
    life.take(make_observation(610, make_topic("x", 2, end=200)))
    assert found(life) == [("never_committed", 10)]
    assert detail(life) == "records arrive in the group's partitions, and the group has never committed"
    life.take(make_commit(620, 90, topic="x"), make_observation(630, make_topic("x", 2, end=200)))
    assert found(life) == []


def ends(second: int, *end: int, **changes: Any) -> GroupInput:
    return make_observation(second, make_topic("x", len(end), end=end, **changes))


OPEN = {"last_stable_offsets": packed([100, 100])}
TWO = make_record(5, even("x", 2, "a", "b"))


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        # Records that have just come need not be committed yet.
        ([TWO, ends(10, 100, 100), ends(1_200, 100, 100), ends(1_210, 150, 150)], []),
        (
            [TWO, ends(10, 100, 100), ends(1_200, 100, 100), ends(1_210, 150, 150), ends(1_810, 150, 150)],
            [("never_committed", 1_200)],
        ),
        # Members that have just come back are given their time.
        (
            [
                *(TWO, ends(10, 100, 100), ends(300, 150, 150), make_record(400, (), generation=2)),
                *(make_record(3_595, even("x", 2, "a", "b"), generation=3), ends(3_600, 500, 500)),
            ],
            [],
        ),
        # A commit of offset 0 is a commit.
        ([TWO, ends(10, 100, 100), ends(300, 150, 150), make_commit(400, 0, topic="x"), ends(2_000, 200, 200)], []),
        # Where nothing arrives there is nothing to commit; a transaction that stays open is nothing that arrives.
        ([TWO, ends(10, 100, 100), ends(300, 100, 100), ends(2_000, 100, 100)], []),
        ([TWO, *(ends(at, 150, 150, **OPEN) for at in (10, 300, 2_000))], []),
        # A single offset may be a transaction marker.
        ([make_record(5, (make_member("a", ("x",), {"x": (0,)}),)), ends(10, 100), ends(700, 101)], []),
        # A group without members is not asked.
        (
            [TWO, ends(10, 100, 100), ends(300, 150, 150), make_record(400, (), generation=2), ends(2_000, 300, 300)],
            [],
        ),
    ],
)
def test_only_members_that_have_had_time_to_commit_what_arrived_are_told_of(
    inputs: list[GroupInput], expected: list[tuple[str, int]]
) -> None:
    assert found(Life.after(*inputs)) == expected


def test_a_commit_that_may_be_there_unread_keeps_the_finding_away_also_where_records_came_before_the_hold() -> None:
    life = consuming((10, 100), (20, 200))
    for at in (300, 700, 900):
        life.take(make_observation(at, make_topic("x", 2, end=at), held_since=START + 25 * SECOND))
        assert [name for name, _ in found(life)] == ["offsets_blocked"]
    life.take(make_commit(901, 150, topic="x"), make_observation(910, make_topic("x", 2, end=1_000)))
    assert found(life) == []


def rebalancing(*seconds: int) -> list[GroupInput]:
    return [make_record(at, even("x", 2, "a", "b"), generation=at) for at in seconds]


def test_a_storm_is_a_finding_however_the_log_was_cut_and_ends_with_it() -> None:
    burst = rebalancing(5, *range(7_200, 7_260, 10))
    rounds = [make_commit(7_261, 1, topic="x"), make_observation(7_270, make_topic("x", 2))]
    at_once, one_by_one = Life(), Life()
    at_once.take(*burst, *rounds)
    for item in (*burst, *rounds):
        one_by_one.take(item)
    assert found(at_once) == found(one_by_one) == [("rebalance_storm", 7_200)]
    at_once.take(make_observation(7_900, make_topic("x", 2)))
    assert found(at_once) == []


def test_a_group_that_was_created_again_has_no_past_to_compare_with() -> None:
    life = Life.after(*rebalancing(5), make_tombstone(7_000), *rebalancing(*range(7_200, 7_260, 10)))
    life.take(make_commit(7_261, 1, topic="x"), make_observation(7_270, make_topic("x", 2)))
    assert found(life) == []

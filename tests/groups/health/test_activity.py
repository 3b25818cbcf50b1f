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
    make_cooperative,
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


def shows(second: int, state: str, **changes: Any) -> GroupInput:
    """A round that shows the group in this state."""
    return make_observation(second, make_topic("x", 2), state=state, **changes)


def blocked(second: int, since: int) -> GroupInput:
    return shows(second, PREPARING, held_since=START + since * SECOND)


PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
STUCK = ("stuck_rebalance", 20)
TWO = make_record(5, even("x", 2, "a", "b"))
TWO_DECIDED = [TWO, shows(10, "Stable")]

# Inputs, and the findings of the newest round.
STATES: dict[str, list[tuple[list[GroupInput], list[tuple[str, int]]]]] = {
    "within the timeout": [([*TWO_DECIDED, shows(20, PREPARING), shows(20 + TIMEOUT_S, PREPARING)], [])],
    "a second phase has a timeout of its own": [
        ([*TWO_DECIDED, shows(20, PREPARING), shows(300, COMPLETING), shows(590, COMPLETING)], []),
        ([shows(601, COMPLETING)], [STUCK]),
    ],
    "one that begins again and again is stuck after three timeouts": [
        ([*TWO_DECIDED, *(shows(at, (PREPARING, COMPLETING)[at // 100 % 2]) for at in range(20, 920, 100))], []),
        ([shows(921, PREPARING)], [STUCK]),
    ],
    "it ends with a round that shows another state": [
        ([*TWO_DECIDED, shows(20, PREPARING), shows(400, PREPARING)], [STUCK]),
        ([shows(410, "Stable")], []),
        ([shows(420, PREPARING)], []),
    ],
    "rebalances that end between the rounds are not one that lasts": [
        ([*TWO_DECIDED, shows(20, PREPARING)], []),
        *(
            (
                [make_record(at, even("x", 2, "a", "b"), generation=at), shows(at + 10, PREPARING)],
                [],
            )
            for at in range(100, 2_000, 100)
        ),
    ],
    "one that was stuck before the log was blocked stays so": [
        ([*TWO_DECIDED, shows(20, PREPARING), shows(370, PREPARING)], [STUCK]),
        ([blocked(390, 380)], [("offsets_blocked", 380), STUCK]),
        ([shows(400, PREPARING)], [STUCK]),
    ],
    "what turns out to have been one when the log goes on is stuck at once": [
        ([*TWO_DECIDED, shows(20, PREPARING), blocked(400, 30)], [("offsets_blocked", 30)]),
        ([shows(410, PREPARING)], [STUCK]),
    ],
    "a first rebalance whose timeouts nobody knows": [([shows(20, PREPARING), shows(20_000, PREPARING)], [])],
    "one before an outage and one after it are not one that lasts": [
        (
            [
                *TWO_DECIDED,
                *(
                    shows(at, PREPARING, elapsed=elapsed * SECOND)
                    for at, elapsed in ((20, 20), (3_620, 50), (3_630, 60))
                ),
            ],
            [],
        )
    ],
    "members that wait for a handover are not idle": [
        (
            [
                *(make_cooperative(5, 1, a=(0, 1, 2)), make_observation(6, make_topic("x", 3))),
                *(make_cooperative(15, 2, a=(0, 1), b=()), make_observation(16, make_topic("x", 3))),
            ],
            [("partitions_pending_handover", 15)],
        ),
        ([make_cooperative(25, 3, a=(0, 1), b=(2,)), make_observation(26, make_topic("x", 3))], []),
    ],
}


@pytest.mark.parametrize("case", STATES)
def test_a_rebalance_is_stuck_after_the_timeouts_of_its_members(case: str) -> None:
    life = Life()
    for inputs, expected in STATES[case]:
        life.take(*inputs)
        assert found(life) == expected


@pytest.mark.parametrize(
    ("state", "task"), [(PREPARING, "join again"), (COMPLETING, "get their assignments from the leader")]
)
def test_a_stuck_rebalance_says_what_its_members_are_to_do(state: str, task: str) -> None:
    life = Life.after(*TWO_DECIDED, shows(20, state), shows(21 + TIMEOUT_S, state))
    assert found(life) == [STUCK]
    assert detail(life) == (
        f"{state}: the members of the last generation (2) have 300 s to {task}, and no generation has followed"
    )


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


def test_a_member_that_the_broker_gives_nothing_is_idle_once_the_target_is_reached() -> None:
    life = Life.after(*read(FIRST), observation(15))
    second = [metadata("b"), epoch(2), target("a", 0, 1, 2, 3), target("b"), stands(2), owns("a", 2, 0, 1, 2, 3)]
    life.take(*read(second, 15), observation(21))
    assert [name for name, _ in found(life)] == ["reconciling"]
    life.take(*read([owns("b", 2)], 21), observation(22))
    assert found(life) == [("idle_members", 19)]
    assert detail(life) == "1 of 2 members own nothing, the broker assigns 4 partitions for 2 members so: b"


def ends(second: int, *end: int, held: int | None = None, **changes: Any) -> GroupInput:
    since = None if held is None else START + held * SECOND
    return make_observation(second, make_topic("x", len(end), end=end, **changes), held_since=since)


OPEN = {"last_stable_offsets": packed([100, 100])}


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
        # A commit may be there unread, also where records came before the hold.
        (
            [
                *(TWO, ends(10, 100, 100), ends(20, 200, 200)),
                *(ends(at, at, at, held=25) for at in (300, 700, 900)),
            ],
            [("offsets_blocked", 25)],
        ),
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


def test_members_that_own_partitions_where_records_arrive_and_commit_nothing_are_a_finding_after_ten_minutes() -> None:
    life = Life.after(TWO, ends(10, 100, 100), ends(300, 150, 150), ends(609, 200, 200))
    assert found(life) == []
    life.take(ends(610, 200, 200))
    assert found(life) == [("never_committed", 10)]
    assert detail(life) == "records arrive in the group's partitions, and the group has never committed"
    life.take(make_commit(620, 90, topic="x"), ends(630, 200, 200))
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
    life = Life.after(
        *rebalancing(5),
        make_tombstone(7_000),
        *rebalancing(*range(7_200, 7_260, 10)),
        make_commit(7_261, 1, topic="x"),
        make_observation(7_270, make_topic("x", 2)),
    )
    assert found(life) == []

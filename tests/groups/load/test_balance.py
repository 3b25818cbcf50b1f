"""How even the load of a group's members is, and which partitions are too much for any of them."""

from __future__ import annotations

import pytest

from streaming.records import UnreadableMembership
from tests.groups.build import Assigned, Life, make_member, make_record, make_topic
from tests.groups.load.windows import EVERY, HEARTBEAT, after_a_window, record_of, round_at, see
from tests.groups.modern_log import TOPIC_ID, epoch, metadata, owns, read, stands, target


def told(life: Life) -> tuple[float | None, float | None, float | None, list[tuple[int, float]] | None]:
    row = life.rows.group_health[-1]
    hot = None if row.hot_partitions is None else [(one.partition, one.per_second) for one in row.hot_partitions]
    return row.load_imbalance, row.load_imbalance_optimal_min, row.load_imbalance_optimal_max, hot


@pytest.mark.parametrize(
    ("per_second", "owned", "topics", "expected"),
    [
        # A hot member has two busy partitions that another assignment would part.
        ({"x": [9, 9, 1, 1]}, [{"x": (0, 1)}, {"x": (2, 3)}], None, (18 / 10 - 1, 0.0, 0.0, [])),
        # A hot partition is more than a fair share no matter who has it.
        ({"x": [16, 2, 2]}, [{"x": (0,)}, {"x": (1, 2)}], None, (0.6, 0.6, 0.6, [(0, 16.0)])),
        # More members than partitions make no partition hot.
        ({"x": [5, 5]}, [{"x": (0,)}, {"x": (1,)}, {}, {}], None, (1.0, 1.0, 1.0, [])),
        # Those that carry about the same are not hot in turns: it takes a tenth more than a fair share.
        ({"x": [102, 98]}, [{"x": (0,)}, {"x": (1,)}], None, (0.02, 0.02, 0.02, [])),
        ({"x": [33, 27]}, [{"x": (0,)}, {"x": (1,)}], None, (0.1, 0.1, 0.1, [])),
        ({"x": [34, 26]}, [{"x": (0,)}, {"x": (1,)}], None, (0.1333, 0.1333, 0.1333, [(0, 34.0)])),
        # One member is perfectly even.
        ({"x": [9, 1]}, [{"x": (0, 1)}], None, (0.0, 0.0, 0.0, [])),
        # Without records there is no imbalance, nor with a partition of which no rate is known.
        ({"x": [0, 0]}, [{"x": (0,)}, {"x": (1,)}], None, (None, None, None, None)),
        ({"x": [5, 5]}, [{"x": (0,)}, {"x": (1,), "y": (0,)}], ("x", "y"), (None, None, None, None)),
        # The present assignment can be reached: longest first gives 5 + 3 and 4 + 3 + 3.
        ({"x": [5, 4, 3, 3, 3]}, [{"x": (0, 1)}, {"x": (2, 3, 4)}], None, (0.0, 0.0, 0.0, [])),
    ],
)
def test_the_balance_of_an_assignment_and_the_partitions_that_no_other_would_make_even(
    per_second: dict[str, list[int]],
    owned: list[Assigned],
    topics: tuple[str, ...] | None,
    expected: tuple[float | None, float | None, float | None, list[tuple[int, float]] | None],
) -> None:
    *balance, hot = told(after_a_window(per_second, *owned, topics=topics))
    assert balance == [None if value is None else pytest.approx(value, abs=1e-4) for value in expected[:3]]
    assert hot == expected[3]


@pytest.mark.parametrize("count", [24, 100])
def test_busy_partitions_that_few_members_share_are_not_hot(count: int) -> None:
    rates = [100 + at for at in range(12)] + [0] * (count - 12)
    life = after_a_window({"x": rates}, *[{"x": tuple(range(p, count, 6))} for p in range(6)])
    assert told(life)[3] == []


def test_ten_hot_partitions_are_named_the_hottest_first() -> None:
    life = Life.after(make_record(1, [make_member(f"m{p:02}", ("x",), {"x": (p,)}) for p in range(15)]))
    see(life, {"x": [100 + p if p < 12 else 1 for p in range(15)]}, 0, HEARTBEAT)
    assert told(life)[3] == [(p, 100.0 + p) for p in range(11, 1, -1)]


def test_no_member_is_nothing() -> None:
    life = Life.after(round_at(0, make_topic("x", 1)))
    see(life, {"x": [3]}, 0, HEARTBEAT)
    assert told(life) == (None, None, None, None)


def test_who_subscribes_to_what_limits_what_any_assignment_could_reach() -> None:
    life = Life()
    members = [make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("y",), {"y": (0,)})]
    life.take(make_record(1, members))
    see(life, {"x": [9, 9], "y": [2]}, 0, HEARTBEAT)
    assert told(life) == (pytest.approx(0.8), pytest.approx(0.8), pytest.approx(0.8), [])


def test_a_new_assignment_is_weighed_at_the_next_round_with_the_same_rates() -> None:
    rates = {"x": [9, 9, 1, 1]}
    life = after_a_window(rates, {"x": (0, 1)}, {"x": (2, 3)})
    life.take(record_of(6_010, {"x": (0, 2)}, {"x": (1, 3)}, topics=("x",)))
    see(life, rates, HEARTBEAT + EVERY, HEARTBEAT + EVERY)
    assert told(life) == (0.0, 0.0, 0.0, [])


def test_members_of_the_new_protocol_are_weighed_by_what_they_own() -> None:
    life = Life()
    members = [metadata("a"), epoch(1), target("a", 0, 1, 2, 3), stands(1), owns("a", 1, 0, 1, 2, 3)]
    moves = [metadata("b"), epoch(2), target("a", 0, 1), target("b", 2, 3), stands(2), owns("a", 2, 0, 1)]
    life.take(*read([*members, *moves, owns("b", 2, 2, 3)], 1))
    for second in range(0, HEARTBEAT + 1, EVERY):
        seen = make_topic("orders", 4, end=[second * rate for rate in (6, 6, 2, 2)], topic_id=TOPIC_ID)
        life.take(round_at(second + 60, seen, state=None, group_type="consumer"))
    assert told(life) == (0.5, 0.0, 0.0, [])
    life.take(*read([epoch(3), target("a", 0, 2), target("b", 1, 3), stands(3), owns("a", 3, 0, 2)], 8_000))
    life.take(*read([owns("b", 3, 1, 3)], 8_010))
    life.take(round_at(900, make_topic("orders", 4, end=9_000, topic_id=TOPIC_ID), state=None, group_type="consumer"))
    assert told(life) == (0.0, 0.0, 0.0, [])


def test_a_window_without_rates_does_not_repeat_the_imbalance_of_the_one_before() -> None:
    rates = {"x": [9, 9, 1, 1]}
    life = after_a_window(rates, {"x": (0, 1)}, {"x": (2, 3)})
    assert told(life)[0] == 18 / 10 - 1
    see(life, rates, 10 * HEARTBEAT, 10 * HEARTBEAT)
    assert told(life) == (None, None, None, None)


def test_after_a_membership_that_cannot_be_read_nobody_is_said_to_carry_anything() -> None:
    life = after_a_window({"x": (3, 1)}, {"x": (0,)}, {"x": (1,)})
    assert told(life)[0] is not None
    life.take(UnreadableMembership(10 * HEARTBEAT + 10))
    see(life, {"x": (3, 1)}, HEARTBEAT + EVERY, HEARTBEAT + 2 * EVERY)
    assert told(life) == (None, None, None, None)

"""What each member carries: a row at each window's end, and a closing row when it has left."""

from __future__ import annotations

import msgspec

from streaming.groups.rows import MemberLoadRow
from tests.groups.build import START, Life, make_commit, make_record, make_topic
from tests.groups.load.windows import EVERY, HEARTBEAT, after_a_window, record_of, round_at, see
from tests.groups.modern_log import TOPIC_ID, epoch, metadata, owns, read, stands, target


def told(rows: list[MemberLoadRow]) -> dict[str, tuple[int, float | None, float | None, float | None]]:
    return {
        row.member_id: (row.partitions, row.produced_per_second, row.consumed_per_second, row.share)
        for row in rows
        if not row.ended
    }


def ended(life: Life) -> list[tuple[str, int]]:
    return [(row.member_id, (row.round_time - START) // 1_000) for row in life.rows.member_load if row.ended]


def test_each_member_has_a_row_with_its_part_at_each_end_of_a_window() -> None:
    rates = {"x": [6, 1, 1]}
    life = after_a_window(rates, {"x": (0,)}, {"x": (1, 2)}, {})
    # Nobody has committed, and c owns nothing.
    first = {"a": (1, 6.0, None, 0.75), "b": (2, 2.0, None, 0.25), "c": (0, 0.0, 0.0, 0.0)}
    assert told(life.rows.member_load) == first
    see(life, rates, HEARTBEAT + EVERY, 2 * HEARTBEAT)
    assert [(row.round_time - START) // 1_000 for row in life.rows.member_load] == [600] * 3 + [1_200] * 3
    assert ended(life) == []


def test_what_a_member_consumes_is_the_sum_of_its_partitions() -> None:
    life = Life.after(record_of(1, {"x": (0, 1)}, topics=("x",)))
    for second in range(0, HEARTBEAT + 1, EVERY):
        at = START + second * 1_000
        commits = [make_commit(10 * second + 3 + p, second * (1 + p), topic="x", partition=p, time=at) for p in (0, 1)]
        life.take(*commits)
        see(life, {"x": [5, 5]}, second, second)
    assert told(life.rows.member_load[-1:]) == {"a": (2, 10.0, 3.0, 1.0)}


def test_a_member_that_has_left_has_a_closing_row_at_the_next_round() -> None:
    rates = {"x": [6, 1]}
    life = after_a_window(rates, {"x": (0,)}, {"x": (1,)})
    life.take(record_of(6_010, {"x": (0, 1)}, topics=("x",)))
    see(life, rates, HEARTBEAT + EVERY, 2 * HEARTBEAT)
    assert ended(life) == [("b", HEARTBEAT + EVERY)]
    assert told(life.rows.member_load[-1:]) == {"a": (2, 7.0, None, 1.0)}


def test_members_of_a_group_that_is_empty_or_gone_have_closing_rows() -> None:
    life = after_a_window({"x": [6, 1]}, {"x": (0,)}, {"x": (1,)})
    life.take(make_record(6_010, generation=2), round_at(660))
    assert ended(life) == [("a", 660), ("b", 660)]
    life = after_a_window({"x": [6, 1]}, {"x": (0,)}, {"x": (1,)})
    life.take(round_at(660, gone="deleted", state=None))
    assert ended(life) == [("a", 660), ("b", 660)]
    assert life.state is None


def test_a_member_that_came_and_went_within_a_window_has_no_rows() -> None:
    rates = {"x": [6, 1]}
    life = after_a_window(rates, {"x": (0, 1)})
    life.take(record_of(6_010, {"x": (0,)}, {"x": (1,)}, topics=("x",)))
    see(life, rates, 660, 660)
    life.take(record_of(6_700, {"x": (0, 1)}, topics=("x",)))
    see(life, rates, 720, 2 * HEARTBEAT)
    assert {row.member_id for row in life.rows.member_load} == {"a"}


def test_a_share_needs_the_rates_of_all_members() -> None:
    life = after_a_window({"x": [6, 1]}, {"x": (0,)}, {"x": (1,), "y": (0,)}, topics=("x", "y"))
    assert told(life.rows.member_load) == {"a": (1, 6.0, None, None), "b": (2, None, None, None)}


def test_after_a_window_without_certain_length_rates_are_unknown() -> None:
    rates = {"x": [6, 1]}
    life = after_a_window(rates, {"x": (0, 1)}, {})
    see(life, rates, 9_000, 9_000)
    assert [(row.member_id, row.round_time) for row in life.rows.member_load[2:]] == [
        ("a", START + 9_000_000), ("b", START + 9_000_000),
    ]  # fmt: skip
    assert told(life.rows.member_load[2:]) == {"a": (2, None, None, None), "b": (0, None, None, None)}


def test_a_member_that_cannot_be_decoded_has_not_left() -> None:
    rates = {"x": [6, 1]}
    life = after_a_window(rates, {"x": (0,)}, {"x": (1,)})
    record = record_of(6_010, {"x": (0,)}, {"x": (1,)}, topics=("x",))
    first, *others = record.members
    unread = msgspec.structs.replace(first, assigned=None, undecodable="it is cut")
    life.take(msgspec.structs.replace(record, members=(unread, *others)))
    see(life, rates, HEARTBEAT + EVERY, 2 * HEARTBEAT)
    assert ended(life) == []


def test_a_window_without_certain_length_leaves_no_rows() -> None:
    life = Life.after(record_of(1, {"x": (0,)}, topics=("x",)))
    see(life, {"x": [6]}, 0, 0)
    see(life, {"x": [6]}, 5_000, 5_000)
    assert life.rows.member_load == []


def test_members_that_a_broker_assigns_have_closing_rows_only_when_they_have_left() -> None:
    life = Life()
    both = [metadata("a"), metadata("b"), epoch(1), target("a", 0, 1), target("b", 2, 3), stands(1)]
    life.take(*read([*both, owns("a", 1, 0, 1), owns("b", 1, 2, 3)], 1))
    for second in range(0, 2 * HEARTBEAT + 1, EVERY):
        seen = make_topic("orders", 4, end=[5 * second] * 4, topic_id=TOPIC_ID)
        life.take(round_at(second + 60, seen, state=None, group_type="consumer"))
    assert [(row.member_id, row.ended) for row in life.rows.member_load] == [("a", False), ("b", False)] * 2

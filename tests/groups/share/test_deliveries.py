"""Lag and deliveries of a share group at rounds, written by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streaming.groups.rows import LagRow
from streaming.records import (
    BROKERS,
    START_NOT_TOLD,
    STATE_LOG,
    GroupInput,
    GroupObservation,
    SeenShares,
    SharePartition,
)
from tests.groups.build import (
    SECOND,
    START,
    Life,
    counted,
    make_commit,
    make_observation,
    make_topic,
    packed,
    rows_in_batches,
)

LOCK_MS = 30_000
LIMIT = 5


def kept(start: int, done: int = 0, **fields: Any) -> SharePartition:
    """A partition as its records have it; nothing came back, and the first record behind what is done is not done."""
    known = {"first": start + done, "acknowledged": done, "archived": 0, "released": 0, "deliveries": 0}
    return SharePartition(0, start, done, **(known | fields))


def start_and_lag(start: int, lag: int) -> SharePartition:
    """A partition as its coordinator tells it."""
    return SharePartition(0, start, lag=lag)


def see(
    second: int, one: SharePartition | None, end: int, *, since: int = 1, log_start: int = 0, **changes: Any
) -> GroupObservation:
    """A round of a group with members; without a partition its deliveries are not known."""
    topic = make_topic("x", 1, end=end)
    if log_start:
        topic = make_topic("x", 1, end=end, log_start_offsets=log_start.to_bytes(8, "little"))
    shares = changes.pop("shares", None)
    if one is not None:
        source = BROKERS if one.done < 0 else STATE_LOG
        settings = {"lock_ms": LOCK_MS, "limit": LIMIT} | changes.pop("settings", {})
        shares = SeenShares(source, since, {"x": (one,)}, **settings)
    given: dict[str, Any] = {"group_type": "share", "protocol_type": "share", "state": "Stable"} | changes
    return make_observation(second, topic, shares=shares, **given)


def newest(life: Life) -> LagRow:
    return life.rows.lag[-1]


def findings(life: Life) -> dict[str, str]:
    return {found.finding: found.detail for found in life.rows.group_health[-1].findings}


def test_lag_is_what_is_behind_the_start_offset_and_not_done() -> None:
    life = Life.after(see(10, kept(4, 3, first=5, archived=1, released=2, deliveries=2), 20))
    row = newest(life)
    assert (row.committed_offset, row.high_watermark, row.lag, row.lag_read_committed) == (4, 20, 13, 13)
    assert (row.done_records, row.archived_records, row.released_records, row.delivery_count_max) == (3, 1, 2, 2)
    health = life.rows.group_health[-1]
    assert (health.lag_total, health.group_type, health.lag_unknown) == (13, "share", 0)


def test_where_coordinators_tell_lag_the_rest_is_unknown() -> None:
    row = newest(Life.after(see(10, start_and_lag(4, 9), 20)))
    assert (row.committed_offset, row.lag, row.reason) == (4, 9, None)
    assert {row.done_records, row.archived_records, row.released_records, row.delivery_count_max} == {None}
    assert {row.given_up_records, row.rejected_records} == {None}


def test_a_round_that_could_ask_nobody_says_that_lag_is_unknown() -> None:
    life = Life.after(see(10, kept(4), 20), see(20, None, 25))
    assert (newest(life).lag, newest(life).reason, newest(life).lag_status) == (None, "deliveries_not_told", "unknown")
    life.take(see(30, kept(25), 25))
    assert (newest(life).lag, newest(life).lag_status) == (0, "ok")


def test_a_partition_that_its_coordinator_could_not_tell_is_unknown_and_not_gone() -> None:
    life = Life.after(see(10, start_and_lag(4, 9), 20), see(20, start_and_lag(START_NOT_TOLD, -1), 20))
    row = newest(life)
    assert (row.ended, row.committed_offset, row.lag, row.reason) == (False, 4, None, "deliveries_not_told")
    assert findings(life) == {}


def test_a_partition_that_nothing_was_delivered_of_has_no_lag_and_no_row() -> None:
    life = Life.after(see(10, SharePartition(0, -1), 20))
    assert life.rows.lag == []


def test_the_age_of_a_backlog_is_that_of_the_oldest_record_that_is_not_done() -> None:
    # 10 arrives between the rounds of 10 and 20 s, and 12 later; 10 to 11 are done behind a start offset of 5.
    life = Life.after(
        see(10, kept(5, 5), 10), see(20, kept(5, 5), 12), see(30, kept(5, 7), 14), see(40, kept(5, 7), 14)
    )
    row = newest(life)
    assert (row.lag, row.oldest_unread_reason) == (2, None)
    assert row.oldest_unread_time_min == START + 20 * SECOND
    assert row.oldest_unread_time_max == START + 30 * SECOND + SECOND // 2


def test_where_it_is_not_told_what_is_done_only_the_lower_bound_is_known() -> None:
    life = Life.after(
        see(10, start_and_lag(10, 0), 10), see(20, start_and_lag(10, 2), 14), see(30, start_and_lag(10, 2), 14)
    )
    row = newest(life)
    assert (row.lag, row.oldest_unread_reason, row.oldest_unread_time_max) == (2, "done_not_told", None)
    assert row.oldest_unread_time_min == START + 10 * SECOND
    health = life.rows.group_health[-1]
    assert (health.time_behind_seconds_min, health.time_behind_seconds_max) == (0.0, None)
    assert health.time_behind_reason == "done_not_told"


def test_where_nothing_can_be_done_behind_the_start_both_bounds_are_known() -> None:
    life = Life.after(
        see(10, start_and_lag(10, 0), 10), see(20, start_and_lag(10, 4), 14), see(30, start_and_lag(10, 4), 14)
    )
    row = newest(life)
    assert (row.oldest_unread_time_min, row.oldest_unread_reason) == (START + 10 * SECOND, None)
    assert row.oldest_unread_time_max == START + 20 * SECOND + SECOND // 2


@pytest.mark.parametrize(
    ("after", "rewound"),
    [
        (kept(7), 0),  # the kept start offset follows what was done: the same position
        (kept(9), 0),
        (kept(3), 4),  # somebody has reset the group
    ],
)
def test_a_group_goes_back_only_where_its_position_does(after: SharePartition, rewound: int) -> None:
    life = Life.after(see(10, kept(4, 3), 20), see(20, after, 20))
    assert newest(life).rewound_by == rewound
    assert ("rewound" in findings(life)) == (rewound > 0)


def test_a_round_that_only_coordinators_tell_is_no_step_back() -> None:
    life = Life.after(see(10, kept(4, 9), 20), see(20, start_and_lag(4, 7), 20), see(30, kept(4, 10), 20))
    assert [row.rewound_by for row in life.rows.lag] == [0, 0, 0]
    assert [row.lag for row in life.rows.lag] == [7, 7, 6]


def test_what_was_done_below_the_log_start_is_not_lost() -> None:
    life = Life.after(
        see(10, kept(4, 6), 20), see(20, kept(4, 6), 20, log_start=10), see(30, kept(4, 6), 20, log_start=10)
    )
    assert newest(life).lost_records == 0
    life.take(see(40, kept(4, 6), 20, log_start=15), see(50, kept(4, 6), 20, log_start=15))
    assert newest(life).lost_records == 5
    assert newest(life).lag == 5


def test_a_state_that_is_deleted_is_reported() -> None:
    life = Life.after(see(10, kept(4), 20), see(20, None, 20, shares=SeenShares(STATE_LOG, 1, {})))
    assert (newest(life).ended, newest(life).offset_deleted) == (True, True)
    assert findings(life) == {"offset_deleted": "committed offsets were deleted or expired: x (1 partition)"}


def test_the_rate_is_that_of_records_that_get_done_in_any_order() -> None:
    life = Life.after(*(see(10 * at, kept(0, 5 * at), 1_000) for at in range(1, 63)))
    assert life.rows.group_health[-1].consumed_per_second == 0.5


def test_records_that_are_given_up_are_counted_once() -> None:
    life = Life.after(
        see(10, kept(4, archivals=((1, 2),)), 20),
        see(20, kept(4, archivals=((1, 2), (5, 3))), 20),
        see(30, kept(4, archivals=((1, 2), (5, 3))), 20),
        see(40, kept(4, archivals=((1, 3), (5, 4))), 20),
    )
    assert [(row.given_up_records, row.rejected_records) for row in life.rows.lag] == [(0, 2), (3, 0), (1, 1)]
    assert findings(life) == {"records_given_up": "archived after 5 deliveries: x 0 (4 records)"}


def test_a_probe_that_starts_counts_what_the_one_before_has_not() -> None:
    before, after = see(10, kept(4, archivals=((5, 3),)), 20), see(20, kept(4, archivals=((5, 2),)), 20, since=2)
    assert [row.given_up_records for row in Life.after(before, after).rows.lag] == [3, 2]


def test_given_up_records_are_shown_for_ten_minutes_with_the_topic_that_got_them() -> None:
    letters = {"dead_letters": "letters"}
    life = Life.after(see(10, kept(4, archivals=((5, 1),)), 20, settings=letters))
    said = "archived after 5 deliveries, and written to letters: x 0 (1 record)"
    assert findings(life) == {"records_given_up": said}
    life.take(see(600, kept(4, archivals=((5, 1),)), 20, settings=letters))
    assert "records_given_up" in findings(life)
    life.take(see(611, kept(20, archivals=((5, 1),)), 20, settings=letters))
    assert findings(life) == {}


def test_without_a_known_limit_nobody_says_that_records_were_given_up() -> None:
    life = Life.after(see(10, kept(4, archivals=((5, 1),)), 20, settings={"limit": None, "lock_ms": None}))
    assert (newest(life).given_up_records, newest(life).rejected_records, findings(life)) == (0, 1, {})


def test_a_record_that_comes_back_again_and_again_while_nothing_moves_is_reported() -> None:
    life = Life.after(*(see(10 * n, kept(4, released=1, deliveries=n, first=4), 20) for n in (1, 2)))
    assert findings(life) == {}
    life.take(see(30, kept(4, released=1, deliveries=3, first=4), 20))
    assert findings(life) == {
        "redelivering": "records come back and are delivered again, and nothing moves: x 0 (3 of at most 5 deliveries)"
    }
    life.take(see(40, kept(5, released=1, deliveries=3, first=5), 20))
    assert findings(life) == {}


def test_the_oldest_record_stands_longer_than_all_its_deliveries_could_take() -> None:
    rounds = [see(at, kept(4), 20) for at in range(10, 191, 10)]
    life = Life.after(*rounds)
    assert findings(life) == {}
    life.take(see(200, kept(4), 20))
    assert findings(life) == {
        "stuck_deliveries": "the oldest record that is not done stands longer than 5 deliveries of 30 s take: "
        "x 0 (at offset 4 for 190 s)"
    }
    assert life.rows.group_health[-1].findings[0].since == START + 10 * SECOND
    life.take(see(210, kept(5), 20))
    assert findings(life) == {}


@pytest.mark.parametrize(
    "changes",
    [{"state": "Empty"}, {"settings": {"lock_ms": None}}, {"settings": {"limit": None}}],
    ids=["nobody is there", "the lock is not known", "the limit is not known"],
)
def test_nothing_is_stuck_where_nobody_can_say_so(changes: dict[str, Any]) -> None:
    life = Life.after(*(see(at, kept(4), 20, **changes) for at in range(10, 1_000, 10)))
    assert "stuck_deliveries" not in {found.finding for row in life.rows.group_health for found in row.findings}


def test_what_waits_for_the_end_of_a_transaction_is_not_stuck() -> None:
    topic = make_topic("x", 1, end=20, last_stable_offsets=packed([4]))
    rounds = [msgspec.structs.replace(see(at, kept(4), 20), topics=(topic,)) for at in range(10, 400, 10)]
    assert findings(Life.after(*rounds)) == {}


def test_a_single_offset_that_was_never_delivered_may_be_a_marker() -> None:
    life = Life.after(*(see(at, kept(19), 20) for at in range(10, 400, 10)))
    assert findings(life) == {}
    again = Life.after(*(see(at, kept(19, released=1, deliveries=1), 20) for at in range(10, 400, 10)))
    assert list(findings(again)) == ["stuck_deliveries"]


def test_a_group_that_commits_is_no_share_group_any_more() -> None:
    life = Life.after(see(10, kept(4, 3), 20), make_commit(15, 12, topic="x"))
    life.take(make_observation(20, make_topic("x", 1, end=20)))
    row = newest(life)
    assert (row.committed_offset, row.lag, row.done_records, row.reason) == (12, 8, None, None)


def test_a_group_that_shares_has_none_of_the_offsets_that_its_namesake_has_committed() -> None:
    life = Life.after(make_commit(5, 12, topic="x"), make_observation(10, make_topic("x", 1, end=20)))
    life.take(see(20, kept(4, 3), 20))
    row = newest(life)
    assert (row.committed_offset, row.lag, row.rewound_by, row.lag_status) == (4, 13, 0, "ok")


def test_rows_do_not_depend_on_how_the_rounds_were_cut() -> None:
    inputs: list[GroupInput] = [
        see(10, kept(0), 10),
        see(20, kept(0, 4, released=1, deliveries=1), 12),
        see(30, start_and_lag(0, 3), 15),
        see(40, None, 15),
        see(50, kept(3, 4, archivals=((1, 1), (5, 2)), released=2, deliveries=3), 30),
        see(60, kept(3, 4, archivals=((5, 1),), released=2, deliveries=4), 30, since=2),
    ]
    whole = counted(rows_in_batches(inputs))
    for cut in range(1, len(inputs)):
        assert counted(rows_in_batches(inputs, [cut])) == whole

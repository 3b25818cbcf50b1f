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


Step = tuple[list[GroupInput], dict[str, Any], dict[str, str]]
"""Inputs, then columns of the newest row of `lag`, and the findings with their details."""

UNTOLD = ("done_records", "archived_records", "released_records", "delivery_count_max")
NOT_TOLD = {"lag": None, "reason": "deliveries_not_told"}
LETTERS = {"dead_letters": "letters"}
GIVEN_UP = "archived after 5 deliveries"
COMES_BACK = "records come back and are delivered again, and nothing moves: x 0 (3 of at most 5 deliveries)"
STANDS = "the oldest record that is not done stands longer than 5 deliveries of 30 s take: x 0"

STEPS: dict[str, list[Step]] = {
    "where coordinators tell lag the rest is unknown": [
        (
            [see(10, start_and_lag(4, 9), 20)],
            {"committed_offset": 4, "lag": 9, "reason": None, "given_up_records": None, "rejected_records": None}
            | dict.fromkeys(UNTOLD),
            {},
        )
    ],
    "a round that could ask nobody says that lag is unknown": [
        ([see(10, kept(4), 20), see(20, None, 25)], NOT_TOLD | {"lag_status": "unknown"}, {}),
        ([see(30, kept(25), 25)], {"lag": 0, "lag_status": "ok"}, {}),
    ],
    "a partition that its coordinator could not tell is unknown and not gone": [
        (
            [see(10, start_and_lag(4, 9), 20), see(20, start_and_lag(START_NOT_TOLD, -1), 20)],
            NOT_TOLD | {"ended": False, "committed_offset": 4},
            {},
        )
    ],
    **{
        f"the kept start offset follows what was done, at the same position: {start}": [
            ([see(10, kept(4, 3), 20), see(20, kept(start), 20)], {"rewound_by": 0}, {})
        ]
        for start in (7, 9)
    },
    "somebody has reset the group": [
        (
            [see(10, kept(4, 3), 20), see(20, kept(3), 20)],
            {"rewound_by": 4},
            {"rewound": "committed offsets went back: x 0 is 4 below where it was"},
        )
    ],
    "a round that only coordinators tell is no step back": [
        ([see(10, kept(4, 9), 20)], {"rewound_by": 0, "lag": 7}, {}),
        ([see(20, start_and_lag(4, 7), 20)], {"rewound_by": 0, "lag": 7}, {}),
        ([see(30, kept(4, 10), 20)], {"rewound_by": 0, "lag": 6}, {}),
    ],
    "what was done below the log start is not lost": [
        (
            [see(10, kept(4, 6), 20), *(see(at, kept(4, 6), 20, log_start=10) for at in (20, 30))],
            {"lost_records": 0},
            {},
        ),
        (
            [see(at, kept(4, 6), 20, log_start=15) for at in (40, 50)],
            {"lost_records": 5, "lag": 5},
            {"data_lost": "deleted before the group committed past it: x 0 (5 offsets)"},
        ),
    ],
    "a state that is deleted is reported": [
        (
            [see(10, kept(4), 20), see(20, None, 20, shares=SeenShares(STATE_LOG, 1, {}))],
            {"ended": True, "offset_deleted": True},
            {"offset_deleted": "committed offsets were deleted or expired: x (1 partition)"},
        )
    ],
    "records that are given up are counted once": [
        ([see(10, kept(4, archivals=((1, 2),)), 20)], {"given_up_records": 0, "rejected_records": 2}, {}),
        (
            [see(at, kept(4, archivals=((1, 2), (5, 3))), 20) for at in (20, 30)],
            {"given_up_records": 3, "rejected_records": 0},
            {"records_given_up": f"{GIVEN_UP}: x 0 (3 records)"},
        ),
        (
            [see(40, kept(4, archivals=((1, 3), (5, 4))), 20)],
            {"given_up_records": 1, "rejected_records": 1},
            {"records_given_up": f"{GIVEN_UP}: x 0 (4 records)"},
        ),
    ],
    "they are shown for ten minutes with the topic that got them": [
        (
            [see(at, kept(4, archivals=((5, 1),)), 20, settings=LETTERS)],
            {},
            {"records_given_up": f"{GIVEN_UP}, and written to letters: x 0 (1 record)"}
            | ({"stuck_deliveries": f"{STANDS} (at offset 4 for 590 s)"} if at > 10 else {}),
        )
        for at in (10, 600)
    ]
    + [([see(611, kept(20, archivals=((5, 1),)), 20, settings=LETTERS)], {}, {})],
    "without a known limit nobody says that records were given up": [
        (
            [see(10, kept(4, archivals=((5, 1),)), 20, settings={"limit": None, "lock_ms": None})],
            {"given_up_records": 0, "rejected_records": 1},
            {},
        )
    ],
    "a record that comes back again and again while nothing moves is reported": [
        ([see(10 * n, kept(4, released=1, deliveries=n, first=4), 20) for n in (1, 2)], {}, {}),
        ([see(30, kept(4, released=1, deliveries=3, first=4), 20)], {}, {"redelivering": COMES_BACK}),
        ([see(40, kept(5, released=1, deliveries=3, first=5), 20)], {}, {}),
    ],
    "the oldest record stands longer than all its deliveries could take": [
        ([see(at, kept(4), 20) for at in range(10, 191, 10)], {}, {}),
        ([see(200, kept(4), 20)], {}, {"stuck_deliveries": f"{STANDS} (at offset 4 for 190 s)"}),
        ([see(210, kept(5), 20)], {}, {}),
    ],
    "what waits for the end of a transaction is not stuck": [
        (
            [
                msgspec.structs.replace(
                    see(at, kept(4), 20),
                    topics=(make_topic("x", 1, end=20, last_stable_offsets=packed([4])),),
                )
                for at in range(10, 400, 10)
            ],
            {},
            {},
        )
    ],
    "a single offset that was never delivered may be a marker": [
        ([see(at, kept(19), 20) for at in range(10, 400, 10)], {}, {}),
    ],
    "and one that was delivered is a record": [
        (
            [see(at, kept(19, released=1, deliveries=1), 20) for at in range(10, 400, 10)],
            {},
            {"stuck_deliveries": f"{STANDS} (at offset 19 for 380 s)"},
        ),
    ],
    "a group that commits is no share group any more": [
        (
            [see(10, kept(4, 3), 20), make_commit(15, 12, topic="x"), make_observation(20, make_topic("x", 1, end=20))],
            {"committed_offset": 12, "lag": 8, "done_records": None, "reason": None},
            {},
        )
    ],
    "a group that shares has none of the offsets that its namesake has committed": [
        (
            [make_commit(5, 12, topic="x"), make_observation(10, make_topic("x", 1, end=20)), see(20, kept(4, 3), 20)],
            {"committed_offset": 4, "lag": 13, "rewound_by": 0, "lag_status": "ok"},
            {},
        )
    ],
}


@pytest.mark.parametrize("case", STEPS)
def test_rows_and_findings_follow_from_what_is_delivered_and_done(case: str) -> None:
    life = Life()
    for inputs, columns, details in STEPS[case]:
        life.take(*inputs)
        assert {name: getattr(newest(life), name) for name in columns} == columns
        assert findings(life) == details


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


def test_the_rate_is_that_of_records_that_get_done_in_any_order() -> None:
    life = Life.after(*(see(10 * at, kept(0, 5 * at), 1_000) for at in range(1, 63)))
    assert life.rows.group_health[-1].consumed_per_second == 0.5


def test_a_probe_that_starts_counts_what_the_one_before_has_not() -> None:
    before, after = see(10, kept(4, archivals=((5, 3),)), 20), see(20, kept(4, archivals=((5, 2),)), 20, since=2)
    assert [row.given_up_records for row in Life.after(before, after).rows.lag] == [3, 2]


@pytest.mark.parametrize(
    "changes",
    [{"state": "Empty"}, {"settings": {"lock_ms": None}}, {"settings": {"limit": None}}],
    ids=["nobody is there", "the lock is not known", "the limit is not known"],
)
def test_nothing_is_stuck_where_nobody_can_say_so(changes: dict[str, Any]) -> None:
    life = Life.after(*(see(at, kept(4), 20, **changes) for at in range(10, 1_000, 10)))
    assert "stuck_deliveries" not in {found.finding for row in life.rows.group_health for found in row.findings}


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

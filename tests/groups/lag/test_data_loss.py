"""Until when retention keeps what a group has not read: never a promise that the broker may break."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups.rows import GroupHealthRow
from streaming.records import TopicRetention
from tests.examples import examples
from tests.groups.build import SECOND, Life, even, make_commit, make_observation, make_record, make_topic

HOUR_MS = 3_600_000

APPENDED = TopicRetention(HOUR_MS, -1, True, True)


def keeping(ms: int = HOUR_MS, size: int = -1, *, deletes: bool = True, append_time: bool = True) -> TopicRetention:
    return TopicRetention(ms, size, deletes, append_time)


def behind(kept: TopicRetention | None, *seconds: int, **more: Any) -> GroupHealthRow:
    """A group that has read all up to 20, and nothing of what came between the rounds at 20 and at 30.

    Rounds close half a second after they open.
    """
    life = Life.after(make_record(5, even("x", 1, "a")), make_commit(6, 100, topic="x"))
    for at, end in ((10, 100), (20, 100), (30, 150), (40, 150), *((at, 150) for at in seconds)):
        life.take(make_observation(at, make_topic("x", 1, end=end, retention=kept, **more)))
    return life.rows.group_health[-1]


def told(row: GroupHealthRow) -> tuple[float | None, float | None, str | None]:
    return row.loses_data_in_seconds_min, row.loses_data_in_seconds_max, row.loses_data_reason


def test_retention_counts_from_the_bounds_of_the_oldest_unread_record_on() -> None:
    row = behind(APPENDED)
    # It came between 20 and 30.5, was in the log a minute before it was readable at most, and the row is of 40.
    assert (row.round, *told(row)) == (40, 3_600 + 20 - 60 - 40, 3_600 + 30.5 - 40, None)
    place = row.loses_data_topic, row.loses_data_partition, row.loses_data_retention_seconds, row.loses_data_by
    assert place == ("x", 0, 3_600.0, "append_time")


def test_rows_are_written_at_changes_only_and_the_time_of_the_end_is_the_same_in_all_of_them() -> None:
    life = Life.after(make_record(5, even("x", 1, "a")), make_commit(6, 100, topic="x"))
    for at, end in ((10, 100), (20, 100), *((at, 150) for at in range(30, 2_000, 10))):
        life.take(make_observation(at, make_topic("x", 1, end=end, retention=APPENDED)))
    rows = [row for row in life.rows.group_health if row.loses_data_in_seconds_max is not None]
    assert len(rows) <= 2 + 2_000 // 600 + 2
    assert {round(row.round + (row.loses_data_in_seconds_max or 0), 3) for row in rows} == {3_630.5}


def test_what_is_past_its_retention_may_go_at_any_time_and_never_is_negative() -> None:
    assert told(behind(APPENDED, 3_599)) == (0.0, 31.5, None)
    assert told(behind(APPENDED, 9_000)) == (0.0, 0.0, None)


def test_with_create_time_the_bounds_rest_on_the_producers_and_the_row_says_so() -> None:
    row = behind(keeping(append_time=False))
    assert (told(row), row.loses_data_by) == (told(behind(APPENDED)), "create_time")


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (None, (None, None, "retention_unknown")),
        (keeping(deletes=False), (None, None, "no_retention")),
        (keeping(-1), (None, None, "no_retention")),
        (keeping(2**63 - 1), (None, None, "no_retention")),
        (keeping(100 * 366 * 86_400_000), (None, None, "no_retention")),
        (keeping(-1, 1_000), (None, None, "retention_bytes")),
        (keeping(-1, 0), (None, None, "retention_bytes")),
        (keeping(HOUR_MS, 1_000), (None, 3_590.5, "retention_bytes")),
        (keeping(0), (0.0, 0.0, None)),
    ],
)
def test_what_settings_do_not_promise_is_null_with_a_reason(kept: TopicRetention | None, expected: object) -> None:
    assert told(behind(kept)) == expected


def test_a_group_that_keeps_up_is_in_no_danger_however_short_the_retention_and_gets_no_rows_by_it() -> None:
    life = Life.after(make_record(5, even("x", 1, "a")))
    for at in range(10, 600, 10):
        life.take(make_commit(at - 1, at, topic="x"))
        life.take(make_observation(at, make_topic("x", 1, end=at + 5, retention=keeping(30 * SECOND))))
    assert told(life.rows.group_health[-1]) == (None, None, "keeps_up")
    without = Life.after(make_record(5, even("x", 1, "a")))
    for at in range(10, 600, 10):
        without.take(make_commit(at - 1, at, topic="x"))
        without.take(make_observation(at, make_topic("x", 1, end=at + 5)))
    assert len(without.rows.group_health) == len(life.rows.group_health)


def test_a_backlog_from_before_the_first_round_may_go_at_any_time() -> None:
    life = Life.after(make_record(5, even("x", 1, "a")), make_commit(6, 50, topic="x"))
    life.take(make_observation(10, make_topic("x", 1, end=100, retention=APPENDED)))
    assert told(life.rows.group_health[-1]) == (None, 3_600.5, "before_rounds")


def test_no_lag_at_all_says_nothing() -> None:
    life = Life.after(make_record(5, even("x", 1, "a")), make_observation(10, make_topic("x", 1, retention=APPENDED)))
    assert told(life.rows.group_health[-1]) == (None, None, "lag_unknown")


Topics = list[tuple[TopicRetention | None, int]]


@st.composite
def several(draw: st.DrawFn) -> Topics:
    """Topics with their settings, and the round from which on they have unread records."""
    kept = st.one_of(
        st.none(),
        st.builds(
            TopicRetention,
            st.sampled_from([-1, 0, 60_000, HOUR_MS, 2**63 - 1]),
            st.sampled_from([-1, -1, 1_000]),
            st.booleans(),
            st.booleans(),
        ),
    )
    return draw(st.lists(st.tuples(kept, st.integers(2, 8)), min_size=1, max_size=4))


@settings(deadline=None, max_examples=examples(100))
@given(several())
def test_of_several_topics_the_first_end_counts(topics: Topics) -> None:
    life = Life()
    names = [f"t{number}" for number in range(len(topics))]
    members = even(names[0], 1, "a", topics=names)
    life.take(make_record(5, members), *(make_commit(6, 100, topic=name) for name in names))
    for step in range(1, 11):
        seen = [
            make_topic(name, 1, end=100 if step < since else 150, retention=kept)
            for name, (kept, since) in zip(names, topics, strict=True)
        ]
        life.take(make_observation(10 * step, *seen))
    row = life.rows.group_health[-1]
    # Each record came between the rounds at 10 (since - 1) and 10 since + 0.5; that of 100 is the newest row.
    limited = [
        (kept, since)
        for kept, since in topics
        if kept is not None and kept.deletes and (0 <= kept.ms < 2**62 or kept.bytes >= 0)
    ]
    ends = [kept.ms / 1000 + 10 * since + 0.5 for kept, since in limited if 0 <= kept.ms < 2**62]
    upper = max(0.0, min(ends) - row.round) if ends else None
    assert row.loses_data_in_seconds_max == (None if upper is None else pytest.approx(upper))
    firm = all(kept is not None for kept, _ in topics) and all(kept.bytes < 0 for kept, _ in limited)
    if not firm:
        assert row.loses_data_in_seconds_min is None
    elif limited:
        least = min(kept.ms / 1000 + 10 * (since - 1) - 60 for kept, since in limited)
        assert row.loses_data_in_seconds_min == pytest.approx(max(0.0, least - row.round))
    else:
        assert told(row) == (None, None, "no_retention")

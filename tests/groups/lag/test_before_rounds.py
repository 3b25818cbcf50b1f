"""The oldest unread record of a group that was behind before the first round: what brokers told of its timestamp."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streaming.records import TopicRetention, UnreadTimestamp
from tests.groups.build import MINUTE, SECOND, START, Life, make_commit, make_observation, make_topic

HOUR = 60 * MINUTE
APPENDED = TopicRetention(-1, -1, True, True)
CREATED = TopicRetention(-1, -1, True, False)

BACK = START - 2 * HOUR
"""When the record was written, about."""


def see(life: Life, second: int, told: UnreadTimestamp | None = None, *, end: int = 100, **changes: Any) -> None:
    """A round at a second, which closes half a second later, and what it tells."""
    kept = changes.pop("retention", APPENDED)
    unread = {} if told is None else {0: told}
    life.take(make_observation(second, make_topic("x", 1, end=end, retention=kept, unread=unread), **changes))


def behind(committed: int = 40) -> Life:
    """A group first seen in the middle of a backlog."""
    life = Life.after(make_commit(5, committed, topic="x"))
    see(life, 10)
    return life


def bounds(life: Life) -> tuple[int | None, int | None, str | None, str | None]:
    """Those in the newest row, their method and reason."""
    row = life.rows.lag[-1]
    return (
        row.oldest_unread_time_min,
        row.oldest_unread_time_max,
        row.oldest_unread_method,
        row.oldest_unread_reason,
    )


BY_ROUNDS = (None, START + 10 * SECOND + 500, "rounds", "before_rounds")
TOLD = UnreadTimestamp(40, BACK, BACK + MINUTE, False)
BETWEEN = (BACK, BACK + MINUTE - 1, "append_time", None)


def test_timestamps_of_brokers_bound_a_record_on_both_sides() -> None:
    life = behind()
    assert bounds(life) == BY_ROUNDS
    see(life, 20, TOLD)
    assert bounds(life) == BETWEEN
    row = life.rows.group_health[-1]
    assert (row.time_behind_seconds_min, row.time_behind_seconds_max, row.time_behind_reason) == (
        (20 * SECOND + 2 * HOUR - MINUTE + 1) / SECOND,
        (20 * SECOND + 2 * HOUR) / SECOND,
        None,
    )


LATE = START + HOUR
AT_THE_CLOSE = START + 10 * SECOND + 500
OWN = UnreadTimestamp(40, BACK, -1, True)


@pytest.mark.parametrize(
    ("told", "kept", "expected"),
    [
        # The largest timestamp of producers up to a record bounds it from above only.
        ([TOLD], CREATED, (None, BACK + MINUTE - 1, "timestamps", "before_rounds")),
        # A record that was found has its own timestamp, no matter who gave it.
        ([OWN], APPENDED, (BACK, BACK, "append_time", None)),
        ([OWN], CREATED, (BACK, BACK, "timestamps", None)),
        ([OWN], None, (BACK, BACK, "timestamps", None)),
        # Also one that is found later.
        ([TOLD, UnreadTimestamp(40, BACK + 7, BACK + MINUTE, True)], CREATED, (BACK + 7, BACK + 7, "timestamps", None)),
        # Another record's says nothing.
        ([UnreadTimestamp(39, BACK, BACK + MINUTE, True)], APPENDED, BY_ROUNDS),
        # One after the round that saw the record is not believed, that of the moment at which the round closed is.
        ([UnreadTimestamp(40, LATE, -1, True)], APPENDED, BY_ROUNDS),
        ([UnreadTimestamp(40, LATE, LATE + 1, False)], APPENDED, BY_ROUNDS),
        (
            [UnreadTimestamp(40, AT_THE_CLOSE, -1, True)],
            APPENDED,
            (AT_THE_CLOSE, AT_THE_CLOSE, "append_time", None),
        ),
        # Below a time that rounds undercut, only what it has reached is news.
        ([UnreadTimestamp(40, BACK, LATE, False)], APPENDED, (BACK, AT_THE_CLOSE, "append_time", None)),
        ([UnreadTimestamp(40, BACK, LATE, False)], CREATED, BY_ROUNDS),
    ],
)
def test_what_was_told_of_a_record_counts_as_far_as_it_is_certain(
    told: list[UnreadTimestamp], kept: TopicRetention | None, expected: object
) -> None:
    life = behind()
    for number, one in enumerate(told):
        see(life, 20 + 10 * number, one, retention=kept)
    assert bounds(life) == expected


def test_the_first_answer_stays_and_one_row_tells_it() -> None:
    life = behind()
    see(life, 20, TOLD)
    written = len(life.rows.lag), len(life.rows.group_health)
    for second in range(30, 300, 10):
        # Another probe's search, or none yet.
        see(life, second, UnreadTimestamp(40, BACK + 5, BACK + MINUTE - 5, False) if second % 20 else None)
    assert (len(life.rows.lag), len(life.rows.group_health)) == written
    see(life, 300, end=120)
    assert bounds(life) == BETWEEN


def test_it_is_the_same_however_the_stream_is_cut() -> None:
    inputs = [make_commit(5, 40, topic="x")]
    rounds = [
        make_observation(second, make_topic("x", 1, end=100 + second, retention=APPENDED, unread={0: TOLD}))
        for second in range(10, 100, 10)
    ]
    whole, cut = Life(), Life()
    whole.take(*inputs, *rounds)
    for one in (*inputs, *rounds):
        cut.take(one)
    assert whole.state == cut.state
    assert bounds(whole) == bounds(cut) == BETWEEN


def test_the_next_record_has_to_be_told_anew_and_one_that_rounds_saw_needs_nothing() -> None:
    life = behind()
    see(life, 20, TOLD, end=200)
    life.take(make_commit(25, 41, topic="x"))
    see(life, 30, end=200)
    assert bounds(life) == BY_ROUNDS
    see(life, 40, UnreadTimestamp(41, BACK + 1, BACK + MINUTE, False), end=200)
    assert bounds(life) == (BACK + 1, BACK + MINUTE - 1, "append_time", None)
    life.take(make_commit(45, 150, topic="x"))
    see(life, 50, end=200)
    assert bounds(life) == (START + 10 * SECOND, START + 20 * SECOND + 500, "rounds", None)


def test_a_log_that_is_cut_back_or_replaced_takes_what_was_told_with_it() -> None:
    life = behind()
    see(life, 20, TOLD)
    see(life, 30, end=90)
    assert bounds(life)[2:] == ("rounds", "before_rounds")
    life = behind()
    see(life, 20, TOLD)
    life.take(
        make_observation(30, make_topic("x", 1, end=100, topic_id="another", retention=APPENDED, unread={0: TOLD}))
    )
    assert bounds(life)[2:] == (None, "lag_unknown")


def test_a_clock_that_is_set_right_takes_what_another_clock_told_until_it_is_told_again() -> None:
    life = behind()
    for second in (20, 30):
        see(life, second, TOLD)
    for number in range(4):
        second = 40 + 10 * number
        time = START + second * SECOND + HOUR
        told = TOLD if number != 1 else None
        topic = make_topic("x", 1, end=101 + number, retention=APPENDED, unread={} if told is None else {0: told})
        elapsed = START + second * SECOND
        life.take(make_observation(second, topic, time=time, closed=time + 500, elapsed=elapsed))
    assert bounds(life)[:2] == BETWEEN[:2]


def test_the_marks_of_a_group_that_is_told_of_the_first_record_of_all_stay_in_order() -> None:
    life = behind(committed=0)
    see(life, 20, UnreadTimestamp(0, BACK, -1, True))
    see(life, 30, end=120)
    offsets = life.state.partitions["x"][0].marks[::3]
    assert offsets == sorted(offsets)


@pytest.mark.parametrize("base", [0, 10**15])
def test_what_rounds_saw_beyond_a_record_is_known_again_once_the_next_one_is_not_told(base: int) -> None:
    life = Life.after(make_commit(5, base + 100, topic="x"))
    for second, end in ((10, 100), (20, 100), (30, 200)):
        see(life, second, end=base + end)
    life.take(make_commit(35, base + 40, topic="x"))
    see(life, 40, msgspec.structs.replace(TOLD, offset=base + 40), end=base + 200)
    assert bounds(life) == BETWEEN
    life.take(make_commit(45, base + 41, topic="x"))
    see(life, 50, end=base + 200)
    assert bounds(life) == (None, START + 20 * SECOND + 500, "rounds", "before_rounds")

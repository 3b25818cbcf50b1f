"""The present is always in the last days: members and open transactions repeat their living rows once a day."""

from __future__ import annotations

import msgspec

from streaming.groups.rows import MemberRow
from streaming.log_health import RoundsState, advance_rounds
from streaming.records import GroupInput, HeldPartition
from streaming.times import DAY_MS, day_of
from tests.groups.build import START, Life, even, make_observation, make_record, make_topic
from tests.groups.modern_log import FIRST, observation, read
from tests.groups.rocketmq.world import A, Client, group
from tests.log_health.made_round import make_round


def repeated(rows: list[MemberRow]) -> list[MemberRow]:
    return [row for row in rows if row.repeat is not None]


def as_decided(row: MemberRow, day: int) -> MemberRow:
    return msgspec.structs.replace(row, repeat=None, event_date=day)


def lived(*inputs: GroupInput) -> list[MemberRow]:
    life = Life()
    for one in inputs:
        life.take(one)
    return life.rows.members


def test_members_of_a_classic_group_are_repeated_once_a_day_until_they_leave() -> None:
    topic = make_topic("x", 3)
    rounds = [make_observation(10 + n, topic, time=START + n * DAY_MS // 4) for n in range(13)]
    rows = lived(make_record(5, even("x", 3, "a", "b")), *rounds)
    decided, again = rows[:2], repeated(rows)
    assert [row.member_id for row in again] == ["a", "b", "a", "b"]
    assert [as_decided(row, decided[0].event_date) for row in again] == [*decided, *decided]
    assert [row.event_date for row in again] == [day_of(START + (row.repeat - 10) * DAY_MS // 4) for row in again]  # type: ignore[operator]
    left = lived(make_record(5, even("x", 3, "a")), rounds[0], make_record(11, ()), *rounds[2:])
    assert repeated(left) == []


def test_members_of_a_group_that_is_met_long_after_its_decision_are_repeated_at_its_first_round() -> None:
    first = START + 100 * DAY_MS
    rounds = [
        make_observation(10 + n, make_topic("x", 3), time=first + 10_000 * n, elapsed=10_000 * n) for n in range(3)
    ]
    decided, again = lived(make_record(5, even("x", 3, "a")), *rounds)
    assert (again.repeat, again.event_date) == (10, day_of(first))
    assert as_decided(again, decided.event_date) == decided


def test_one_round_of_a_clock_that_is_a_day_ahead_repeats_nobody() -> None:
    times = [START + 10_000 * n + (DAY_MS if n == 3 else 0) for n in range(6)]
    rounds = [make_observation(10 + n, make_topic("x", 3), time=at, elapsed=10_000 * n) for n, at in enumerate(times)]
    assert repeated(lived(make_record(5, even("x", 3, "a")), *rounds)) == []


def test_members_are_repeated_once_after_days_without_rounds() -> None:
    # Elapsed time stands still meanwhile, so the first round after them may just have a wrong clock.
    times = [0, 10_000, *(3 * DAY_MS + at for at in (20_000, 30_000, 40_000))]
    rounds = [
        make_observation(10 + n, make_topic("x", 3), time=START + at, elapsed=10_000 * n) for n, at in enumerate(times)
    ]
    again = repeated(lived(make_record(5, even("x", 3, "a")), *rounds))
    assert [(row.repeat, row.event_date) for row in again] == [(13, day_of(START + 3 * DAY_MS + 30_000))]


def test_members_of_a_modern_group_are_repeated_with_their_targets() -> None:
    rounds = [observation(20 + n, time=START + n * DAY_MS) for n in range(3)]
    rows = lived(*read(FIRST), *rounds)
    first, *again = rows
    assert first.partitions is not None
    assert [row.repeat for row in again] == [21, 22]
    assert {as_decided(row, first.event_date) for row in again} == {first}


def test_members_of_a_rocketmq_group_are_repeated() -> None:
    world = group(Client(A))
    [first] = world.round(2).members
    world.interval = DAY_MS
    again = repeated(world.round(3).members)
    assert len(again) >= 2
    assert {as_decided(row, first.event_date) for row in again} == {first}


def test_a_transaction_that_stays_open_has_a_row_each_day_and_what_repeats_it_says_so() -> None:
    held = HeldPartition(7, START - 40_000, 100, 180, 3)
    rounds = [
        make_round(n, step // 1_000, elapsed=step, holds=(held,))
        for n, step in ((n, n * DAY_MS // 2) for n in range(1, 7))
    ]
    _, rows = advance_rounds(RoundsState(), rounds, "test")
    found = rows.open_transactions
    assert (found[0].repeat, found[0].round) == (None, 1)
    assert [row.repeat for row in found[1:]] == [row.round for row in found[1:]]
    assert len({row.event_date for row in found[1:]}) == len(found[1:]) == 3
    assert all(row.held for row in found)


def test_an_open_transaction_is_not_repeated_by_a_round_with_a_wrong_time() -> None:
    held = HeldPartition(7, START - 40_000, 100, 180, 3)
    seconds = (10, 20, 40 * DAY_MS // 1_000, 40, 50)
    rounds = [make_round(n, at, elapsed=n * 10_000, holds=(held,)) for n, at in enumerate(seconds, 1)]
    _, rows = advance_rounds(RoundsState(), rounds, "test")
    assert [row.repeat for row in rows.open_transactions] == [None]

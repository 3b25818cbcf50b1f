"""The judgement of lag over whole lives of groups: dead ones are found in time, and no living one counts as dead."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from streaming.groups import advance
from streaming.groups.state import GroupState
from streaming.records import GroupInput
from tests.examples import by_day
from tests.groups.build import CONFIG, GROUP, SECOND, START, make_commit, make_observation, make_topic

pytestmark = pytest.mark.turn(6)


INTERVAL = 10
MINUTE = 60
HOUR = 3_600
DAY = 86_400

Spans = tuple[tuple[int, int], ...]


@dataclass
class Life:
    """The events, in seconds from the beginning.

    Attributes:
        ends: Second of the last round.
        commits: Second of each commit, and the share of the lag that it leaves.
        quiet: Spans without production.
        unseen: Spans without rounds.
        blind: Spans whose rounds do not know the partition's end.
        rate: Records per second.
        interval: Seconds between two rounds.
        rest: Second from which the rounds show the group as idle, once in ten minutes.
    """

    ends: int
    commits: list[tuple[int, float]] = field(default_factory=list)
    quiet: Spans = ()
    unseen: Spans = ()
    blind: Spans = ()
    rate: float = 3.0
    interval: int = INTERVAL
    rest: int | None = None

    def commit(self, at: Iterable[int], leaves: Callable[[int], float] = lambda _: 0.0) -> None:
        """Let the consumer commit at these seconds."""
        self.commits.extend((second, leaves(second)) for second in at)

    def dies(self) -> int:
        """Second of the last commit."""
        return max(second for second, _ in self.commits)


_newest: tuple[str, list[tuple[int, str]]] = ("", [])


def statuses(life: Life) -> list[tuple[int, str]]:
    """The core's status of the partition at each round; cached, because tests ask for the same life several times."""
    global _newest  # noqa: PLW0603 - lives of weeks take seconds
    if _newest[0] != repr(life):
        _newest = (repr(life), list(_lived(life)))
    return _newest[1]


def _lived(life: Life) -> Iterator[tuple[int, str]]:
    state: GroupState | None = None
    commits = sorted(life.commits)
    produced, committed, record, at, elapsed, before = 0.0, 0, 0, 0, 0, 0
    status = "ok"
    for second in _rounds(life):
        inputs: list[GroupInput] = []
        while at < len(commits) and commits[at][0] <= second:
            when, leaves = commits[at]
            end = produced + _produced(life, before or 0, when)
            committed = max(committed, int(end - leaves * (end - committed)))
            record += 1
            inputs.append(make_commit(record, committed, topic="x", time=START + when * SECOND))
            at += 1
        produced += _produced(life, before, second)
        resting = life.rest is not None and second >= life.rest
        # Rounds continue while a group is idle, but do not show it.
        elapsed += second - before if resting else min(second - before, 3 * life.interval)
        before = second
        record += 1
        topic = make_topic("x", 1, end=-1 if _in(second, life.blind) else int(produced))
        observation = make_observation(
            record,
            topic,
            time=START + second * SECOND,
            elapsed=elapsed * SECOND,
            idle=resting,
            state="Empty" if resting else "Stable",
        )
        state, rows = advance(state, GROUP, [*inputs, observation], CONFIG)
        if rows.lag:
            status = rows.lag[-1].lag_status
        yield second, status


def first(life: Life, status: str, since: int) -> int:
    """Seconds from the last commit to the first round with the status; it must then hold until the end."""
    seen = [(second, told) for second, told in statuses(life) if second > since]
    begins = next((second for second, told in seen if told == status), None)
    assert begins is not None, f"never {status}: {sorted({told for _, told in seen})}"
    assert {told for second, told in seen if second >= begins} == {status}
    return begins - since


def _rounds(life: Life) -> Iterator[int]:
    second = life.interval
    while second <= life.ends:
        if not _in(second, life.unseen):
            yield second
        second += 10 * MINUTE if life.rest is not None and second >= life.rest else life.interval


def _produced(life: Life, since: int, until: int) -> float:
    quiet = sum(max(0, min(until, end) - max(since, begin)) for begin, end in life.quiet)
    return max(0, until - since - quiet) * life.rate


def _in(second: int, spans: Spans) -> bool:
    return any(begin <= second < end for begin, end in spans)


BAD = {"stopped", "falling_behind", "stalled"}

# Seconds between two commits; length of the life; longest time until the death is found.
RHYTHMS = {
    "steady": (INTERVAL, 2 * HOUR, 2 * MINUTE),
    "every five minutes": (5 * MINUTE, 4 * HOUR, 20 * MINUTE),
    "hourly": (HOUR, 30 * HOUR, 4 * HOUR),
    "nightly": (DAY, 9 * DAY, 3 * DAY),
}

WEEKEND = 60 * HOUR


def interval(rhythm: str) -> int:
    """Seconds between two rounds; longer for lives of whole days and weeks, to save time."""
    return {"nightly": 10 * MINUTE, "hourly": 2 * MINUTE, "every five minutes": 30}.get(rhythm, INTERVAL)


def jittered(every: int, until: int, share: float, since: int = 0, seed: int = 7) -> list[int]:
    """Seconds at about this distance, varied by a share."""
    dice = random.Random(seed)
    seconds, second = [], since
    while (second := second + round(every * dice.uniform(1 - share, 1 + share))) <= until:
        seconds.append(second)
    return seconds


@pytest.mark.parametrize("rhythm", RHYTHMS)
@pytest.mark.parametrize(
    "before",
    [
        "nothing",
        "an outage of an hour",
        *(pytest.param(before, marks=pytest.mark.nightly) for before in ("a quiet weekend", "both")),
    ],
)
def test_a_dead_consumer_is_found_in_its_own_time(rhythm: str, before: str) -> None:
    every, lived, found = RHYTHMS[rhythm]
    pause = {"nothing": 0, "an outage of an hour": HOUR, "a quiet weekend": WEEKEND, "both": HOUR + WEEKEND}[before]
    half = lived // every // 2 * every
    life = Life(lived + pause + 2 * found, interval=interval(rhythm))
    life.commit(jittered(every, half, 0.05))
    life.commit(jittered(every, lived + pause, 0.05, since=half + pause, seed=8))
    if before in {"an outage of an hour", "both"}:
        # Brokers and probe are down: nothing is produced, committed or seen.
        life.unseen = ((half + 5, half + 5 + HOUR),)
        life.quiet = ((half, half + HOUR),)
    if "weekend" in before or before == "both":
        life.quiet = (*life.quiet, (half + pause - WEEKEND, half + pause))
        life.commit([half + pause - WEEKEND + 5])
    died = life.dies()
    assert BAD.isdisjoint(told for second, told in statuses(life) if second <= died)
    assert first(life, "stopped", died) <= found


@pytest.mark.nightly
@pytest.mark.parametrize("rhythm", ["steady", "every five minutes", "hourly"])
def test_two_accidents_in_which_the_consumer_itself_stood_still_do_not_make_it_patient(rhythm: str) -> None:
    every, lived, found = RHYTHMS[rhythm]
    weekend = lived + 10 * HOUR
    again = weekend + WEEKEND
    life = Life(again + lived + 2 * found, interval=interval(rhythm))
    life.commit(jittered(every, lived, 0.05))
    life.commit(jittered(every, weekend, 0.05, since=lived + 10 * HOUR - lived // 2))
    life.commit(jittered(every, again + lived, 0.05, since=again))
    assert first(life, "stopped", life.dies()) <= found


@pytest.mark.parametrize("rhythm", by_day(RHYTHMS, ["steady", "hourly"]))
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))])
def test_nobody_alive_is_taken_for_dead(rhythm: str, seed: int) -> None:
    every, lived, _ = RHYTHMS[rhythm]
    life = Life(4 * lived, interval=interval(rhythm))
    dice = random.Random(seed)
    life.commit(jittered(every, life.ends, 0.4, seed=seed), lambda _: dice.uniform(0.0, 0.3))
    assert BAD.isdisjoint(told for _, told in statuses(life))


@pytest.mark.nightly
def test_a_nightly_job_that_works_off_its_backlog_in_many_commits_is_not_taken_for_dead_by_day() -> None:
    life = Life(12 * DAY, rate=2.0, interval=MINUTE)
    for night in range(9):
        begins = night * DAY + 2 * HOUR + random.Random(night).randrange(HOUR)
        # Twenty minutes with a commit in each round, each of which leaves most of the lag; then the rest.
        life.commit(range(begins, begins + 20 * MINUTE, MINUTE), lambda _: 0.9)
        life.commit([begins + 20 * MINUTE])
    assert BAD.isdisjoint(told for second, told in statuses(life) if second <= 9 * DAY)
    assert first(life, "stopped", life.dies()) <= 3 * DAY


@pytest.mark.nightly
def test_a_consumer_that_dies_in_the_middle_of_its_first_backlog_is_found_on_the_third_day() -> None:
    life = Life(5 * DAY, rate=0.5, interval=30)
    life.commit([INTERVAL], lambda _: 1.0)
    life.commit(range(DAY, DAY + 20 * MINUTE, 30), lambda _: 0.985)
    assert 2 * DAY < first(life, "stopped", life.dies()) <= 3 * DAY


@pytest.mark.nightly
def test_weekends_of_a_nightly_job_are_learned_within_three_of_them() -> None:
    life = Life(8 * 7 * DAY, interval=10 * MINUTE, rate=1.0)
    life.commit(day * DAY + 2 * HOUR for day in range(8 * 7) if day % 7 < 5)
    stopped = [(second - 3 * HOUR) // (7 * DAY) for second, told in statuses(life) if told == "stopped"]
    assert sorted(set(stopped)) == [0, 1, 2]


@pytest.mark.nightly
def test_a_night_in_which_nothing_comes_is_no_pause() -> None:
    life = Life(2 * DAY + 15 * HOUR)
    for day in range(3):
        life.commit([*jittered(INTERVAL, day * DAY + 14 * HOUR, 0.1, since=day * DAY), day * DAY + 14 * HOUR + 1])
    life.quiet = tuple((day * DAY + 14 * HOUR, (day + 1) * DAY) for day in range(2))
    died = life.dies()
    assert BAD.isdisjoint(told for second, told in statuses(life) if second <= died)
    assert first(life, "stopped", died) <= 2 * MINUTE


def test_rounds_that_do_not_know_the_end_are_no_pause_and_end_no_status() -> None:
    life = Life(6 * HOUR, blind=((HOUR, 3 * HOUR),))
    life.commit(range(5, HOUR, INTERVAL))
    life.commit(range(3 * HOUR + 30, 4 * HOUR, INTERVAL))
    told = dict(statuses(life))
    assert {told[second] for second in told if HOUR <= second < 3 * HOUR} == {"unknown"}
    assert BAD.isdisjoint(told[second] for second in told if second < 4 * HOUR)
    assert first(life, "stopped", life.dies()) <= 2 * MINUTE
    life.blind = (*life.blind, (5 * HOUR, 5 * HOUR + 600))
    told = dict(statuses(life))
    assert (told[5 * HOUR - 10], told[5 * HOUR], told[5 * HOUR + 600]) == ("stopped", "unknown", "stopped")


def test_the_outage_after_which_consumers_come_back_within_a_minute_makes_no_alarm() -> None:
    life = Life(4 * HOUR, unseen=((HOUR, 2 * HOUR),), quiet=((HOUR, 2 * HOUR),))
    life.commit(range(5, HOUR, INTERVAL), lambda _: 0.5)
    life.commit(range(2 * HOUR + MINUTE, 4 * HOUR, INTERVAL), lambda _: 0.5)
    assert BAD.isdisjoint(told for _, told in statuses(life))


def test_a_status_does_not_get_better_because_time_goes_by() -> None:
    ranks = {"ok": 0, "rewound": 1, "falling_behind": 2, "stalled": 3, "stopped": 4}
    for leaves in (lambda _: 0.2, lambda second: 0.2 + second / 4_000):
        life = Life(HOUR, rate=4.0)
        life.commit(range(7, 20 * MINUTE, INTERVAL), leaves)
        died = life.dies()
        told = [ranks[status] for second, status in statuses(life) if second > died]
        assert told == sorted(told)
        assert told[-1] == ranks["stopped"]


def test_a_consumer_slower_than_what_comes_is_told_whatever_its_rhythm() -> None:
    # Each commit leaves a fifth of the records since the previous one.
    for every in (INTERVAL, 5 * MINUTE):
        life = Life(40 * every)
        for turn in range(1, 40):
            life.commits.append((turn * every, 0.2 * turn / (0.2 * turn + 0.8)))
        told = [status for _, status in statuses(life)]
        assert "falling_behind" in told
        assert told[-1] == "falling_behind"


# Groups without members (the rule `nobody_consumes`): if nothing is produced either, they become idle, and rounds
# contain them once in ten minutes.


def test_commits_that_do_not_wake_a_group_that_rests_make_it_no_more_patient() -> None:
    # It commits the same offset again and again, with lag, while nothing is produced.
    life = Life(10 * HOUR)
    life.commit(range(5, HOUR, INTERVAL))
    life.commit(range(HOUR, 6 * HOUR, INTERVAL), lambda _: 1.0)
    life.quiet, life.rest = ((HOUR + MINUTE, life.ends),), HOUR + 3 * MINUTE
    died = life.dies()
    assert first(life, "stopped", died) <= 20 * MINUTE


@pytest.mark.parametrize("rhythm", by_day(RHYTHMS, ["steady", "hourly"]))
def test_a_group_that_rests_with_lag_is_told_at_the_first_look_after_its_time(rhythm: str) -> None:
    every, lived, found = RHYTHMS[rhythm]
    for moment in (10, 130, 590):
        life = Life(lived + 2 * found + HOUR, interval=interval(rhythm))
        life.commit(jittered(every, lived, 0.02))
        died = life.dies()
        life.quiet = ((died + 5 * MINUTE, life.ends),)
        life.rest = died + 5 * MINUTE + 120 + moment
        # An observation every ten minutes may come ten minutes late.
        assert first(life, "stopped", died) <= max(found, 2.4 * 1.02 * every + 10 * MINUTE)

"""A group that rounds leave out while it rests is judged as one that each round shows."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest

from streaming.groups.rows import GroupHealthRow, LagRow
from streaming.probe.idle import STEADY_ROUNDS, Reporting, Rest, reporting, rest_after, rested
from streaming.records import GroupInput
from tests.groups.build import GROUP, SECOND, Life, even, make_commit, make_observation, make_record, make_topic

STEP = 10
PERIOD = 600 * SECOND


@dataclass
class Watched:
    """One group in two lives: one gets all rounds, the other those that a probe would report."""

    whole: Life = field(default_factory=Life)
    resting: Life = field(default_factory=Life)
    rest: Rest = field(default_factory=Rest)
    second: int = 0
    reported: int = 0
    committed: int = 0

    def see(self, end: int, *inputs: GroupInput, may_rest: bool = True, rounds: int = 1) -> None:
        """Records, and rounds with this high watermark after them."""
        for life in (self.whole, self.resting):
            life.take(*inputs)
        for _ in range(rounds):
            self.second += STEP
            seen = make_observation(self.second, make_topic("x", 2, end=end), elapsed=self.second * SECOND)
            now = rest_after(self.rest, {GROUP: hash((end, self.committed))} if may_rest else {}, seen.time)
            how = reporting(GROUP, self.rest, now, PERIOD)
            idle = how is Reporting.AS_IDLE
            since, until = (None if idle else rested(GROUP, self.rest)) or (-1, -1)
            self.rest = now
            self.whole.take(seen)
            if how is not Reporting.NOT_AT_ALL:
                self.reported += 1
                self.resting.take(msgspec.structs.replace(seen, idle=idle, rested_since=since, rested_until=until))

    def decide(self, end: int, generation: int, *members: str) -> None:
        record = make_record(self.second + 1, even("x", 2, *members), generation=generation)
        self.see(end, record, may_rest=False, rounds=STEADY_ROUNDS)

    def commit(self, end: int) -> None:
        at, self.committed = self.second + 2, end
        commits = [make_commit(at + partition, end, topic="x", partition=partition) for partition in range(2)]
        self.see(end, *commits)


@pytest.fixture
def watched() -> Watched:
    """A group with two members that has read all, and then rests for an hour."""
    watched = Watched()
    watched.commit(100)
    watched.decide(100, 1, "a", "b")
    watched.commit(100)
    watched.see(100, rounds=360)
    return watched


def present(life: Life) -> tuple[list[LagRow], GroupHealthRow]:
    """The newest row of each partition and of the group, but for when they were written."""
    when = {"round": 0, "round_time": 0, "event_date": 0}
    newest = {row.partition: row for row in life.rows.lag}
    lag = [msgspec.structs.replace(row, commits=0, **when) for _, row in sorted(newest.items())]
    return lag, msgspec.structs.replace(life.rows.group_health[-1], commits=0, **when)


def test_at_rest_few_rounds_show_the_group_and_its_present_is_the_same(watched: Watched) -> None:
    assert watched.reported < STEADY_ROUNDS + 15
    assert present(watched.resting) == present(watched.whole)
    assert watched.resting.rows.drift == watched.whole.rows.drift


def test_records_and_commits_after_a_rest_are_judged_alike(watched: Watched) -> None:
    watched.see(150, rounds=3, may_rest=False)
    assert present(watched.resting) == present(watched.whole)
    watched.commit(150)
    lag, health = present(watched.resting)
    assert (lag, health) == present(watched.whole)
    assert [(row.lag, row.lag_status) for row in lag] == [(0, "ok"), (0, "ok")]


def test_a_decision_after_a_rest_is_judged_alike_and_costs_as_much(watched: Watched) -> None:
    watched.decide(100, 2, "a", "b", "c")
    assert watched.resting.rows.drift == watched.whole.rows.drift
    assert watched.resting.rows.rebalance_churn == watched.whole.rows.rebalance_churn


def test_lag_that_nobody_works_off_is_stopped_at_the_same_round(watched: Watched) -> None:
    for end in range(101, 120):
        watched.see(end, may_rest=False)
        watched.commit(end)
    watched.see(500, rounds=120, may_rest=False)  # behind, so that every round shows the group
    lives = watched.resting, watched.whole
    first = [next(row.round for row in life.rows.lag if row.lag_status == "stopped") for life in lives]
    assert first[0] == first[1]

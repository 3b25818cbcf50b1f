"""Rounds without log positions: planned without a log, by one source."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.events import encode
from streaming.job.source.exceptions import AnotherSourceError
from streaming.job.source.positions import INITIAL, Positions
from tests.job.source.made_rounds import closed, opened
from tests.job.source.world import SETTINGS, World, closed_rounds, rounds_of


def seen_round(world: World, **changes: Any) -> int:
    """A round without log positions."""
    number = world.reader.append("rounds", 0, encode(opened()))
    record = encode(closed(number, [], source="admin", **changes))
    world.reader.append("rounds", 0, record, time=2_000_000 + number)
    return number


def follow(world: World, offsets: dict[str, Any], rounds: int, records: int = 0) -> dict[str, Any]:
    """Where the query is after so many rounds without log positions, an interval apart, and so many records of the log.

    The planner looks five times an interval, as it does with the usual trigger.
    """
    for _ in range(rounds):
        seen_round(world)
        for _ in range(5):
            world.log(0, records)
            offsets = world.planner.latest(offsets, 60)
            world.now += 2
    return offsets


@pytest.fixture
def world() -> World:
    return World()


def test_rounds_without_positions_are_taken_without_asking_for_the_log(world: World) -> None:
    numbers = [seen_round(world), seen_round(world)]
    end = world.planner.latest(INITIAL, None)
    assert (end["log"], end["source"], end["round"]) == ({}, "admin", numbers[-1])
    tasks = world.planner.tasks(INITIAL, end)
    assert rounds_of(tasks) == numbers
    assert {told.closed.source for told in closed_rounds(tasks)} == {"admin"}
    assert [task.log for task in tasks if task.log] == []
    assert "log" not in world.reader.known
    assert world.planner.latest(end, None) is end
    assert Positions.read(end).write() == end


def test_silence_reads_no_log_where_groups_are_only_seen(world: World) -> None:
    seen_round(world)
    start = world.planner.latest(INITIAL, None)
    world.now = 1_000.0
    assert world.planner.latest(start, None) is start


@pytest.mark.parametrize("readable", [True, False])
def test_before_any_round_the_log_is_read_only_where_it_may_be(world: World, *, readable: bool) -> None:
    world.reader.forbidden = set() if readable else {"log"}
    world.now = 31.0
    end = world.planner.latest(INITIAL, None)
    assert (end["log"] != {}) == readable


def test_a_query_goes_on_with_its_source_and_ends_when_only_another_comes(world: World) -> None:
    world.round()
    start = world.planner.latest(INITIAL, None)
    seen_round(world)
    world.round()
    end = world.planner.latest(start, None)
    assert rounds_of(world.planner.tasks(start, end)) == [4]
    with pytest.raises(AnotherSourceError, match="'admin' now, and this query follows 'log'"):
        follow(world, end, 5)


@pytest.mark.parametrize("records", [0, 1])
@pytest.mark.parametrize("pause_s", [0, 16, 100])
def test_a_change_of_source_ends_the_query_whether_the_log_moves_or_stands_still(
    world: World, records: int, pause_s: int
) -> None:
    world.round()
    end = world.planner.latest(INITIAL, 60)
    # While no round closes, batches without rounds pass over those of the other source one by one.
    for _ in range(pause_s):
        world.now += 1
        world.log(0, records)
        end = world.planner.latest(end, 60)
    end = follow(world, end, 3, records)
    for _ in range(2):  # ... and again after each restart.
        with pytest.raises(AnotherSourceError):
            follow(world, end, 5, records)
        world.restart()


@pytest.mark.parametrize("others", [3, 60, 200, 6_000])
def test_a_query_goes_on_once_its_own_source_is_back(world: World, others: int) -> None:
    world.round()
    start = world.planner.latest(INITIAL, 60)
    for _ in range(others):
        seen_round(world)
    numbers = [world.round(), world.round()]
    planner = world.restart()
    end = planner.latest(start, 60)
    if others == 6_000:  # More records than one batch reads: it ends behind them.
        assert (end["round"], end["rounds"]) == (start["round"], start["rounds"] + 10_000)
        end = planner.latest(end, 60)
    assert end["round"] == numbers[-1]


def test_rounds_of_another_source_that_are_still_there_end_no_query_before_its_own_source_is_back(world: World) -> None:
    world.round()
    start = world.planner.latest(INITIAL, 60)
    for _ in range(100):
        seen_round(world)
    planner = world.restart()
    for _ in range(120):  # offsets_log was set back, and the probe takes its time.
        world.now += 1
        assert planner.latest(start, 60) is start
    number = world.round()
    assert planner.latest(start, 60)["round"] == number


def test_in_a_run_over_what_is_available_now_rounds_of_another_source_alone_are_refused(world: World) -> None:
    number = world.round()
    for _ in range(3):
        seen_round(world)
    world.planner.available_now()
    end = world.planner.latest(INITIAL, 60)
    assert end["round"] == number
    assert world.planner.latest(end, 60) is end
    next_run = world.restart()
    next_run.available_now()
    with pytest.raises(AnotherSourceError):
        next_run.latest(end, 60)


def test_two_rounds_of_another_source_end_no_run_over_what_is_available_now(world: World) -> None:
    world.round()
    start = world.planner.latest(INITIAL, 60)
    for _ in range(2):
        seen_round(world)
    planner = world.restart()
    planner.available_now()
    assert planner.latest(start, 60) is start


def test_a_setting_passes_over_the_rounds_of_the_other_source(world: World) -> None:
    seen_round(world)
    number = world.round()
    planner = world.restart(SETTINGS.model_copy(update={"offsets_log": "log"}))
    end = planner.latest(INITIAL, None)
    assert rounds_of(planner.tasks(INITIAL, end)) == [number]
    other = world.restart(SETTINGS.model_copy(update={"offsets_log": "admin"}))
    with pytest.raises(AnotherSourceError, match="follows 'log'"):
        other.latest(end, None)

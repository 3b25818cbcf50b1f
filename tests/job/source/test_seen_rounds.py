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
    assert world.planner.latest(end, None) is end
    assert Positions.read(end).write() == end


def test_silence_reads_no_log_where_groups_are_only_seen(world: World) -> None:
    seen_round(world)
    start = world.planner.latest(INITIAL, None)
    world.now = 1_000.0
    assert world.planner.latest(start, None) is start


@pytest.mark.parametrize("others", [3, 60, 200, 6_000])
def test_a_query_passes_over_another_source_says_so_and_goes_on_once_its_own_is_back(
    world: World, caplog: pytest.LogCaptureFixture, others: int
) -> None:
    world.round()
    start = offsets = world.planner.latest(INITIAL, 60)
    for _ in range(others):
        seen_round(world)
    while (end := world.planner.latest(offsets, 60)) is not offsets:
        offsets = end
    assert (offsets["round"], offsets["log"]) == (start["round"], start["log"])
    assert [m for m in caplog.messages if "from the source 'admin' now, and this query follows 'log'" in m] == [
        caplog.messages[0]
    ]
    numbers = [world.round(), world.round()]
    assert world.restart().latest(offsets, 60)["round"] == numbers[-1]


def test_a_setting_passes_over_the_rounds_of_the_other_source(world: World) -> None:
    seen_round(world)
    number = world.round()
    planner = world.restart(SETTINGS.model_copy(update={"offsets_log": "log"}))
    end = planner.latest(INITIAL, None)
    assert rounds_of(planner.tasks(INITIAL, end)) == [number]
    other = world.restart(SETTINGS.model_copy(update={"offsets_log": "admin"}))
    with pytest.raises(AnotherSourceError, match="follows 'log'"):
        other.latest(end, None)

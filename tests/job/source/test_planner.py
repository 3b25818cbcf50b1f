from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streaming.events import encode
from streaming.job.source.positions import INITIAL
from streaming.records import Broker, Brokers
from tests.job.source.fake_reader import FakeReader
from tests.job.source.made_rounds import opened
from tests.job.source.world import FROM_LOG, SETTINGS, World, rounds_of, told, unreadable_of


@pytest.fixture
def world() -> World:
    return World()


def test_rounds_that_are_closed_make_a_batch(world: World) -> None:
    world.round()
    world.log(0, 3)
    world.round()
    end = world.planner.latest(INITIAL, None)
    assert end == INITIAL | {
        "log": {"0": 4, "1": 1},
        "rounds": 4,
        "round": 2,
        "time": 1_000_002,
        "elapsed": 2,
        "cluster_id": "kafka",
    }
    tasks = world.planner.tasks(INITIAL, end)
    assert rounds_of(tasks) == [0, 2]
    shares = {share.partition: (share.start, share.end, share.boundaries) for task in tasks for share in task.log}
    assert shares == {0: (0, 4, (1,)), 1: (0, 1, ())}


def test_a_batch_is_told_with_the_rounds_that_it_took_and_those_that_it_left_behind(world: World) -> None:
    assert world.planner.backlog is None
    for _ in range(5):
        world.round()
        world.log(0, 1)
    offsets, told = INITIAL, []
    while (after := world.planner.latest(offsets, 2)) is not offsets:
        told.append(world.planner.backlog)
        offsets = after
    assert told == [{"rounds": took, "rounds_behind": left} for took, left in ((2, 3), (2, 1), (1, 0))]


def test_nothing_new_gives_back_the_very_start(world: World) -> None:
    world.round()
    end = world.planner.latest(INITIAL, None)
    assert world.planner.latest(end, None) is end
    world.reader.append("rounds", 0, encode(opened()))
    world.log(0, 5)
    assert world.planner.latest(end, None) is end


def test_rounds_in_which_nothing_moves_wait_until_there_are_three(world: World) -> None:
    offsets, ends = INITIAL, []
    for number in range(10):
        world.now = 10.0 * number
        world.round(time=1_000_000 + 10_000 * number)
        after = world.planner.latest(offsets, None)
        if after is not offsets:
            ends.append((number, rounds_of(world.planner.tasks(offsets, after))))
        offsets = after
    # The first one has news: the beginning of the log. With the second it is known that nothing moves.
    assert ends == [(0, [0]), (1, [2]), (4, [4, 6, 8]), (7, [10, 12, 14])]


@pytest.mark.parametrize("news", ["a record of the log", "an event", "a broker"])
def test_news_ends_the_wait_of_rounds_in_which_nothing_moved(world: World, news: str) -> None:
    offsets = INITIAL
    for _ in range(3):
        world.round()
        offsets = world.planner.latest(offsets, None)
    assert offsets["round"] == 2
    if news == "a record of the log":
        world.log(0, 1)
        world.round()
    elif news == "an event":
        world.reader.append("events", 0, b"junk")
        world.round(events={"0": (1, 2)})
    else:
        world.round(brokers=Brokers((Broker(1, "a", since=1_000_006),)))
    assert rounds_of(world.planner.tasks(offsets, world.planner.latest(offsets, None))) == [4, 6]


def test_where_a_batch_takes_one_round_none_waits_and_the_job_keeps_up(world: World) -> None:
    offsets, taken = INITIAL, []
    for _ in range(5):
        world.round()
        after = world.planner.latest(offsets, 1)
        taken += rounds_of(world.planner.tasks(offsets, after))
        offsets = after
    assert taken == [0, 2, 4, 6, 8]


def test_the_last_rounds_before_a_probe_ends_do_not_wait_for_ever(world: World) -> None:
    offsets = INITIAL
    for _ in range(3):
        world.round()
        offsets = world.planner.latest(offsets, None)
    world.now = 39.9
    assert world.planner.latest(offsets, None) is offsets
    world.now = 40.0
    assert world.planner.latest(offsets, None)["round"] == 4


def test_no_batch_begins_while_the_source_is_held(world: World, tmp_path: Path) -> None:
    world.round()
    hold = tmp_path / "hold"
    planner = world.restart(SETTINGS.model_copy(update={"hold": str(hold)}))
    hold.touch()
    assert planner.latest(INITIAL, None) is INITIAL
    hold.unlink()
    assert planner.latest(INITIAL, None)["round"] == 0


def test_a_plan_is_the_same_in_another_process(world: World) -> None:
    for _ in range(5):
        world.log(1, 2)
        world.round()
    middle = world.planner.latest(INITIAL, 2)
    end = world.planner.latest(middle, 2)
    here = world.planner.tasks(middle, end)
    end = json.loads(json.dumps(end))
    there = world.restart().tasks(middle, end)
    assert [vars(task) for task in there] == [vars(task) for task in here]
    assert rounds_of(there) == [4, 6]


def test_when_no_round_closes_for_three_intervals_the_log_goes_on_without(world: World) -> None:
    world.round()
    start = world.planner.latest(INITIAL, None)
    world.log(0, 7)
    world.now = 30.0
    assert world.planner.latest(start, None) is start
    world.now = 30.1
    end = world.planner.latest(start, None)
    assert end == start | {"log": {"0": 8, "1": 1}, "inside": True}
    assert rounds_of(world.planner.tasks(start, end)) == []
    assert world.planner.latest(end, None) is end


def test_the_fallback_goes_on_once_an_interval_until_a_round_closes(world: World) -> None:
    world.restart(FROM_LOG)
    world.now = 31.0
    start = world.planner.latest(INITIAL, None)
    world.log(0, 1)
    late = world.ends()
    world.log(1, 1)
    world.now = 40.9
    assert world.planner.latest(start, None) is start
    world.now = 41.0
    end = world.planner.latest(start, None)
    assert end["log"] == {"0": 2, "1": 2}
    # Its positions were taken before the fallback read on: it is too late, and the next one counts.
    world.round(log=late)
    number = world.round()
    after = world.planner.latest(end, None)
    tasks = world.planner.tasks(end, after)
    assert rounds_of(tasks) == [number]
    assert told(tasks) == []


def gone_on(world: World) -> tuple[list[int], dict[str, Any]]:
    """The log's ends before a batch without rounds, and where that batch ends: a round with these ends is too late."""
    world.round()
    start = world.planner.latest(INITIAL, None)
    late = world.ends()
    world.log(0, 3)
    world.now = 31.0
    return late, world.planner.latest(start, None)


def test_a_round_that_came_too_late_for_a_fallback_is_no_record_for_quarantine(world: World) -> None:
    late, middle = gone_on(world)
    world.reader.append("events", 0, b"e")
    world.round(log=late, events={"0": (1, 2)})
    world.log(1, 2)
    world.now = 41.5
    end = world.planner.latest(middle, None)
    assert (end["log"], end["rounds"]) == ({"0": 4, "1": 3}, 4)
    for planner in (world.planner, world.restart()):
        assert unreadable_of(planner.tasks(middle, end)) == []


def test_a_round_with_events_that_came_too_late_for_the_next_batch_is_no_record_for_quarantine(world: World) -> None:
    world.reader.append("events", 1, b"junk")
    late, middle = gone_on(world)
    world.reader.append("events", 1, b"e")
    world.round(log=late, events={"1": (1, 2)})
    world.reader.append("events", 0, b"e")
    number = world.round(events={"0": (1, 2)})
    tasks = world.planner.tasks(middle, world.planner.latest(middle, None))
    assert (rounds_of(tasks), told(tasks)) == ([number], [])


def test_a_fallback_planned_again_in_another_process_takes_no_round(world: World) -> None:
    late, middle = gone_on(world)
    world.reader.append("rounds", 0, b"junk")
    world.round(log=late)
    world.log(0, 10)
    world.now = 41.5
    end = world.planner.latest(middle, None)
    assert end["rounds"] == 5
    tasks = world.restart().tasks(middle, end)
    assert rounds_of(tasks) == []
    assert [kind for kind, _, _ in told(tasks)] == ["record"]


def test_before_its_first_round_a_query_reads_a_log_only_where_the_settings_name_it(world: World) -> None:
    world.now = 31.0
    assert world.planner.latest(INITIAL) is INITIAL
    world.restart(FROM_LOG)
    world.now = 62.0
    assert world.planner.latest(INITIAL)["log"] == {"0": 1, "1": 1}


@pytest.mark.parametrize(("interval_ms", "waits_s"), [(60_000, 180.0), (2**60, 1_800.0)])
def test_an_interval_told_by_the_probe_counts_and_an_absurd_one_does_not_hold_back_membership(
    world: World, interval_ms: int, waits_s: float
) -> None:
    world.round(interval_ms=interval_ms)
    start = world.planner.latest(INITIAL, None)
    world.log(0, 7)
    world.now = waits_s - 1
    assert world.planner.latest(start, None) is start
    world.now = waits_s + 1
    assert world.planner.latest(start, None)["log"]["0"] == 8


def test_a_job_that_starts_during_a_round_of_minutes_waits_for_its_end(world: World) -> None:
    number = world.open(interval_ms=130_000)
    world.log(0, 7)
    for now in (31.0, 120.0):
        world.now = now
        assert world.planner.latest(INITIAL, None) is INITIAL
    world.close(number, interval_ms=130_000)
    assert rounds_of(world.planner.tasks(INITIAL, world.planner.latest(INITIAL, None))) == [number]


def test_rounds_of_minutes_are_taken_although_the_first_of_them_came_too_late(world: World) -> None:
    world.restart(FROM_LOG)
    world.now = 31.0
    late = world.ends()
    world.log(0, 7)
    start = world.planner.latest(INITIAL, None)
    world.round(log=late, interval_ms=130_000)
    taken = []
    for _ in range(3):
        number, at_opening = world.open(interval_ms=130_000), world.ends()
        for _ in range(12):
            world.now += 10.0
            world.log(1, 2)
            start = world.planner.latest(start, None)
        world.close(number, log=at_opening, interval_ms=130_000)
        end = world.planner.latest(start, None)
        taken += rounds_of(world.planner.tasks(start, end))
        start = end
    assert len(taken) == 3


def test_an_outage_is_waited_out(world: World) -> None:
    world.round()
    world.reader.down = True
    assert world.planner.latest(INITIAL, None) is INITIAL
    world.reader.down = False
    assert world.planner.latest(INITIAL, None)["round"] == 0


def test_topics_that_do_not_exist_yet_are_no_outage(world: World) -> None:
    empty = FakeReader()
    world.reader = empty
    world.now = 31.0
    assert world.planner.latest(INITIAL, None) is INITIAL


def test_available_now_ends_with_the_rounds_that_were_closed_then(world: World) -> None:
    world.round()
    world.round()
    world.planner.available_now()
    world.log(0, 9)
    world.round()
    first = world.planner.latest(INITIAL, 1)
    second = world.planner.latest(first, 1)
    assert [first["round"], second["round"]] == [0, 2]
    world.now = 1_000.0
    assert world.planner.latest(second, 1) is second


def test_available_now_without_any_round_reads_the_log(world: World) -> None:
    world.log(0, 9)
    world.restart(FROM_LOG)
    world.planner.available_now()
    world.log(0, 9)
    end = world.planner.latest(INITIAL, 1)
    assert end["log"] == {"0": 10, "1": 1}
    assert world.planner.latest(end, 1) is end


def test_a_log_partition_that_appears_later_is_picked_up(world: World) -> None:
    world.round()
    start = world.planner.latest(INITIAL, None)
    world.log(2, 4)
    world.round()
    end = world.planner.latest(start, None)
    assert end["log"] == {"0": 1, "1": 1, "2": 4}
    shares = [share for task in world.planner.tasks(start, end) for share in task.log]
    assert [(share.partition, share.start, share.end, share.known) for share in shares] == [(2, 0, 4, False)]


def test_an_events_partition_that_appears_later_is_no_reason_to_refuse_its_round(world: World) -> None:
    world.round()
    start = world.planner.latest(INITIAL, None)
    world.reader.append("events", 1, b"junk")
    number = world.round(events={"1": (0, 1)})
    end = world.planner.latest(start, None)
    assert end["round"] == number
    assert end["events"] == {"1": 1}


def test_a_record_that_is_no_round_is_kept_with_the_batch_that_passes_it(world: World) -> None:
    world.reader.append("rounds", 0, b"junk")
    world.round()
    end = world.planner.latest(INITIAL, None)
    assert [(kind, offset) for kind, offset, _ in told(world.planner.tasks(INITIAL, end))] == [("record", 0)]


@pytest.mark.parametrize("record", [encode(opened()), b"junk"], ids=["openings", "junk"])
def test_a_flood_in_the_rounds_topic_is_passed_in_bounded_steps(world: World, record: bytes) -> None:
    for _ in range(25_000):
        world.reader.append("rounds", 0, record)
    number = world.round()
    offsets, batches = INITIAL, 0
    while (end := world.planner.latest(offsets, 60)) is not offsets:
        assert end["rounds"] - offsets["rounds"] <= 5_000
        batches, offsets = batches + 1, end
    assert offsets["round"] == number
    assert batches == 13


def test_rounds_deleted_before_they_were_read_are_a_gap_unless_the_query_is_new(world: World) -> None:
    world.round()
    start = world.planner.latest(INITIAL, None)
    for _ in range(3):
        world.round()
    place = next(p for p in world.reader.logs if p.topic == "rounds")
    world.reader.deleted_below[place] = 6
    end = world.planner.latest(start, None)
    tasks = world.planner.tasks(start, end)
    assert rounds_of(tasks) == [6]
    assert told(tasks) == [("gap", 2, "deleted")]
    fresh = world.restart()
    assert told(fresh.tasks(INITIAL, fresh.latest(INITIAL, None))) == []


def test_shares_are_balanced_by_size(world: World) -> None:
    for partition, size in enumerate([900, 10, 10, 500, 400]):
        world.log(partition, size)
    world.round()
    end = world.planner.latest(INITIAL, None)
    loads = [sum(share.end - share.start for share in task.log) for task in world.planner.tasks(INITIAL, end)]
    assert sorted(loads) == pytest.approx([911, 911], abs=15)


def test_an_empty_batch_makes_no_task(world: World) -> None:
    assert world.planner.tasks(INITIAL, INITIAL) == []


def test_what_a_record_holds_reaches_the_log_as_visible_text_and_in_few_lines(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    hostile = b"two\nlines \x1b[2J"
    for _ in range(30):
        world.reader.append("rounds", 0, b'{"v":1,"type":"' + hostile + b'"}')
    world.round()
    end = world.planner.latest(INITIAL, 60)
    with caplog.at_level("WARNING"):
        world.planner.tasks(INITIAL, end)
    assert all(message.isprintable() for message in caplog.messages)
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == "evenkeel source: and 20 further records of that kind"
    assert all(reason.isprintable() for _, _, reason in told(world.planner.tasks(INITIAL, end)))


def test_rounds_of_a_cluster_that_shares_the_bus_are_no_news(world: World, caplog: pytest.LogCaptureFixture) -> None:
    offsets = INITIAL
    with caplog.at_level("WARNING"):
        for _ in range(3):
            world.round(cluster="other", log=[1] * 50)
            world.log(0, 1)
            number = world.round()
            end = world.planner.latest(offsets, 60)
            assert rounds_of(world.planner.tasks(offsets, end)) == [number]
            offsets = end
    assert caplog.messages == []

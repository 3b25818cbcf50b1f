"""Recreated and truncated topics, and brokers of another cluster."""

from __future__ import annotations

import pytest
from kafka import TopicPartition

from streaming.job.source.exceptions import AnotherClusterError
from streaming.job.source.positions import INITIAL
from tests.job.source.world import World, closed_rounds, gaps_of, rounds_of, told


@pytest.fixture
def world() -> World:
    return World()


def test_a_log_that_stays_shorter_than_what_was_read_is_a_gap_and_goes_on_at_its_new_end(world: World) -> None:
    world.log(0, 49)
    world.round()
    start = world.planner.latest(INITIAL, None)
    place = TopicPartition("log", 0)
    world.reader.logs[place] = world.reader.logs[place][:30]
    world.reader.end[place] = 30
    late = world.round()
    assert world.planner.latest(start, None) is start, "an old end is shown for a moment after a change of leaders"
    world.now = 59.0
    assert world.planner.latest(start, None) is start
    world.now = 61.0
    cut = world.planner.latest(start, None)
    assert cut == start | {"log": {"0": 30, "1": 1}}
    world.log(0, 5)
    tasks = world.restart().tasks(start, cut)
    assert gaps_of(tasks) == [("truncated", "log", 0, 30, 50)]
    assert [share for task in tasks for share in task.log] == []
    # The round that closed in the meantime is processed now, and new records are read.
    number = world.round()
    end = world.planner.latest(cut, None)
    tasks = world.planner.tasks(cut, end)
    assert rounds_of(tasks) == [late, number]
    assert [(share.start, share.end) for task in tasks for share in task.log] == [(30, 35)]


def test_an_end_that_was_only_old_for_a_moment_changes_nothing(world: World) -> None:
    world.log(0, 49)
    world.round()
    start = world.planner.latest(INITIAL, None)
    place = TopicPartition("log", 0)
    world.reader.end[place] = 30
    world.round()
    assert world.planner.latest(start, None) is start
    world.reader.end[place] = 50
    world.round(log=[50, 1])
    world.now = 61.0
    end = world.planner.latest(start, None)
    assert end["log"] == {"0": 50, "1": 1}
    assert gaps_of(world.planner.tasks(start, end)) == []


def test_a_rounds_topic_that_was_created_again_is_taken_up_at_once_and_its_numbers_go_on(world: World) -> None:
    world.reader.ids = {"rounds": "first", "log": "log", "events": "events"}
    for _ in range(3):
        world.round()
    start = world.planner.latest(INITIAL, None)
    assert (start["rounds"], start["round"], start["topics"]["rounds"]) == (6, 4, "first")
    world.reader.create("rounds", 1)
    world.reader.ids["rounds"] = "second"
    world.log(0, 3)
    # Offsets do not show it: the new topic may already have grown beyond the old one.
    numbers = [world.round() for _ in range(5)]
    assert numbers == [0, 2, 4, 6, 8]
    again = world.planner.latest(start, None)
    assert again == start | {"rounds": 0, "base": 6, "topics": {**start["topics"], "rounds": "second"}}
    assert gaps_of(world.restart().tasks(start, again)) == [("recreated", "rounds", 0, 6, 0)]
    end = world.planner.latest(again, None)
    assert rounds_of(world.planner.tasks(again, end)) == [6, 8, 10, 12, 14]
    assert [r.closed.round for r in closed_rounds(world.planner.tasks(again, end))] == numbers
    assert (end["round"], end["base"], end["rounds"]) == (14, 6, 10)


def test_a_rounds_topic_that_was_created_again_is_noticed_before_rounds_of_its_are_taken_for_later_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.reader.ids = {"rounds": "first"}
    world.round()
    start = world.planner.latest(INITIAL, None)
    # The client's metadata is some seconds old: until it is asked again, it has the first topic's id.
    monkeypatch.setattr(world.reader, "refresh", lambda: world.reader.ids.update(rounds="second"))
    for _ in range(3):
        world.round()
    assert world.planner.latest(start, None)["rounds"] == 0


def test_a_rounds_topic_without_an_id_that_stays_shorter_is_taken_up_after_a_minute(world: World) -> None:
    for _ in range(3):
        world.round()
    start = world.planner.latest(INITIAL, None)
    world.reader.create("rounds", 1)
    number = world.round()
    assert world.planner.latest(start, None) is start
    world.now = 61.0
    again = world.planner.latest(start, None)
    assert (again["rounds"], again["base"]) == (0, 6)
    end = world.planner.latest(again, None)
    assert rounds_of(world.planner.tasks(again, end)) == [6 + number]


def test_a_rounds_topic_that_was_cut_back_goes_on_at_its_end_with_new_numbers(world: World) -> None:
    world.reader.ids = {"rounds": "first"}
    for _ in range(3):
        world.round()
    start = world.planner.latest(INITIAL, None)
    place = TopicPartition("rounds", 0)
    world.reader.logs[place], world.reader.end[place] = world.reader.logs[place][:4], 4
    assert world.planner.latest(start, None) is start
    world.now = 61.0
    cut = world.planner.latest(start, None)
    assert (cut["rounds"], cut["base"]) == (4, 2)
    assert gaps_of(world.planner.tasks(start, cut)) == [("truncated", "rounds", 0, 4, 6)]
    assert world.round() == 4
    end = world.planner.latest(cut, None)
    assert end["round"] == 6, "offset 4 was the number of another round"


def test_an_events_topic_that_was_created_again_is_read_from_its_beginning(world: World) -> None:
    world.reader.ids = {"events": "first"}
    world.round(events={"0": (0, 1)})
    start = world.planner.latest(INITIAL, None)
    world.reader.create("events", 1)
    world.reader.ids["events"] = "second"
    again = world.planner.latest(start, None)
    assert again["events"] == {}
    assert gaps_of(world.planner.tasks(start, again)) == [("recreated", "events", 0, 1, 0)]


def test_the_brokers_of_another_cluster_are_refused_in_one_sentence_with_the_way_out(world: World) -> None:
    world.round()
    start = world.planner.latest(INITIAL, None)
    world.reader.cluster_id = "elsewhere"
    with pytest.raises(AnotherClusterError) as refused:
        world.planner.latest(start, None)
    assert str(refused.value) == (
        "The brokers belong to the Kafka cluster elsewhere, the checkpoint of 'test' to kafka: correct "
        "kafka.bootstrap_servers, or give the other cluster a name and a lake of its own."
    )
    world.reader.cluster_id = "kafka"
    assert world.planner.latest(start, None) is start


def test_a_round_of_another_cluster_goes_to_quarantine(world: World) -> None:
    world.round(cluster_id="kafka")
    strange = world.round(cluster_id="elsewhere")
    number = world.round(cluster_id="kafka")
    end = world.planner.latest(INITIAL, None)
    tasks = world.planner.tasks(INITIAL, end)
    assert rounds_of(tasks) == [0, number]
    assert [(kind, offset) for kind, offset, _ in told(tasks)] == [("record", strange + 1)]

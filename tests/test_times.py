"""A broker's clock that is wrong for one round does not change later results, and hardly that round's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from streaming.groups import GroupConfig, Rows, unpack_inputs
from streaming.records import GroupInput, GroupObservation
from streaming.times import RoundClock, Shift, read_clock
from tests.examples import by_day, examples
from tests.groups.build import (
    CONFIG,
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_cooperative,
    make_member,
    make_observation,
    make_record,
    make_topic,
)
from tests.groups.modern_log import TOPIC_ID, epoch, metadata, owns, stands, target
from tests.groups.modern_log import read as read_log
from tests.groups.streams import Step, batches, watched_streams

DAY = 86_400 * SECOND
INTERVAL = 10 * SECOND

QUIET = GroupConfig(cluster="test", heartbeat_ms=2**60)
"""Without heartbeats: elapsed time may be off by up to three intervals, and so may heartbeats."""


def timed(observations: Iterable[GroupObservation], wrong: int = -1, off: int = 0) -> dict[int, GroupObservation]:
    """Rounds by number, as from the source: one with a wrong time, and elapsed time summed up."""
    found: dict[int, GroupObservation] = {}
    before, elapsed = None, 0
    for place, observation in enumerate(observations):
        time = observation.time + (off if place == wrong else 0)
        elapsed += 0 if before is None else max(0, min(time - before, 3 * INTERVAL))
        before = time
        found[observation.round] = msgspec.structs.replace(observation, time=time, elapsed=elapsed)
    return found


def in_order(inputs: Iterable[GroupInput]) -> list[GroupInput]:
    """Inputs in the order of the log, each round at its log position."""
    return sorted(inputs, key=lambda item: item.log_position if isinstance(item, GroupObservation) else item.position)


def lived(inputs: Sequence[GroupInput], config: GroupConfig, wrong: int = -1, off: int = 0) -> Rows:
    observations = timed((item for item in inputs if isinstance(item, GroupObservation)), wrong, off)
    life = Life(config)
    for item in inputs:
        life.take(observations[item.round] if isinstance(item, GroupObservation) else item)
    return life.rows


def untimed(rows: Rows) -> dict[str, list[Any]]:
    """Rows without the times of rounds, and without those that only these times have caused."""
    found = {
        table: [_untimed(msgspec.structs.asdict(row)) for row in getattr(rows, table)]
        for table in rows.__struct_fields__
    }
    # A day that only a wrong clock has seen repeats the rows of members, as any day does.
    found["members"] = [row for row in found["members"] if row["repeat"] is None]
    return found | {table: _moved(found[table]) for table in ("lag", "group_health")}


# Since when something is unread is a time of rounds, too.
_TIMES = ("round_time", "event_date", "oldest_unread_", "time_behind_", "loses_data_")

# Several racks may have been seen around a decision. The times of rounds decide which one is tried first, and so which
# reason the row gives when none could be computed.
_TRIED_FIRST = "with the newest partition counts: "


def _moved(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that differ from the one before of their key; a bound that a wrong clock has left open comes later."""
    before: dict[Any, dict[str, Any]] = {}
    kept = []
    for row in rows:
        # The commits of a row that is left out would be missing from the next one of the group.
        commits = row.pop("commits") if "topic" not in row else row["commits"]
        key, told = (row.get("topic"), row.get("partition")), row | {"round": 0, "commits": 0}
        if before.get(key) != told or (commits and "topic" in row):
            kept.append(row)
        before[key] = told
    return kept


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    row = {column: value for column, value in row.items() if not column.startswith(_TIMES)}
    if "findings" in row:
        row["findings"] = [(found.finding, found.detail) for found in row["findings"]]
    if row.get("inputs") is not None:
        row["inputs"] = {**json.loads(unpack_inputs(row["inputs"])), "partition_racks": None}
    for reason in row.keys() & {"reason", "verdict_reason"}:
        row[reason] = row[reason] and row[reason].removeprefix(_TRIED_FIRST)
    if row.get("ended"):
        row.pop("record_time", None)  # the round's time, for members whose group is gone
    return row


@settings(deadline=None, max_examples=examples(60))
@given(watched_streams(), st.data())
def test_a_life_with_one_wrong_clock_gives_the_rows_of_the_life_without(steps: list[Step], data: st.DataObject) -> None:
    (inputs,) = batches(steps, ())
    rounds = sum(isinstance(item, GroupObservation) for item in inputs)
    assume(rounds > 2)
    wrong = data.draw(st.integers(2, rounds - 1))
    right = lived(inputs, QUIET)
    for off in (DAY, -DAY):
        assert untimed(lived(inputs, QUIET, wrong, off)) == untimed(right)


def an_hour() -> list[GroupInput]:
    """A group of two that commits in every round; after 20 minutes its topic grows, unnoticed by the leader."""
    inputs: list[GroupInput] = [make_record(5, even("x", 2, "a", "b"))]
    for second in range(10, 3_600, 10):
        count = 2 if second < 1_200 else 4
        inputs += [make_commit(second - 1, second, topic="x", partition=p) for p in (0, 1)]
        ends = [second + 20, second + 20, 5, 5]
        inputs.append(make_observation(second, make_topic("x", count, end=ends[:count])))
    return inputs


@pytest.mark.parametrize("off", [DAY, -DAY])
@pytest.mark.parametrize("wrong", by_day([0, 1, 60, 119, 120, 178], [0, 60]))
def test_heartbeats_and_grace_go_on_after_a_wrong_clock(wrong: int, off: int) -> None:
    right, rows = lived(an_hour(), CONFIG), lived(an_hour(), CONFIG, wrong, off)
    if wrong:  # at the very first round it cannot be known
        assert untimed(rows)["drift"] == untimed(right)["drift"]
    # A partition without commits has a row every ten minutes; a wrong clock costs three intervals.
    idle = [row.round for row in rows.lag if row.partition == 3]
    assert len(idle) in {4, 5}
    assert all(abs(later - earlier - 600) <= 40 for earlier, later in pairwise(idle))
    told = {
        finding: next(row.round for row in rows.group_health if finding in {f.finding for f in row.findings})
        for finding in ("stale_metadata", "unassigned")
    }
    assert told["stale_metadata"] == 1_200
    assert abs(told["unassigned"] - 1_800) <= 30
    for row in rows.group_health:
        assert all(START <= found.since <= START + 3_600 * SECOND for found in row.findings)


@pytest.mark.parametrize("off", [DAY, -DAY])
def test_a_group_met_with_a_wrong_clock_is_judged_as_any_other_once_it_is_right(off: int) -> None:
    # No round saw the topic with one partition, for longer than the grace period: b has nothing.
    inputs = in_order([*an_hour(), make_record(1_050, even("x", 1, "a", "b"), generation=2)])
    assert untimed(lived(inputs, QUIET, 0, off))["drift"][1:] == untimed(lived(inputs, QUIET))["drift"][1:]


def leaves_a_hole(at: int) -> list[GroupInput]:
    """A decision at `at` s. Whether more follows is certain under eager strategies alone."""
    members = (make_member("a", ("x",), {"x": (0, 2)}), make_member("b", ("x",), {}))
    return [make_record(at, members, generation=8, protocol="house-blend")]


def hands_over(at: int) -> list[GroupInput]:
    return [make_cooperative(at - 2, 1, a=(0, 1, 2)), make_cooperative(at, 2, a=(0,), b=())]


def target_with_a_hole(at: int) -> list[GroupInput]:
    log = [metadata("a", "i"), epoch(1), target("a", 0, 2), stands(1), owns("a", 1, 0, 2)]
    return read_log(log, at - 3)  # What counts is the record that says which target stands.


def seen(second: int) -> GroupObservation:
    return make_observation(second, make_topic("x", 3))


def seen_consumer_group(second: int) -> GroupObservation:
    topic = make_topic("orders", 3, topic_id=TOPIC_ID)
    return make_observation(second, topic, state=None, group_type="consumer")


@pytest.mark.parametrize("off", [DAY, -DAY])
@pytest.mark.parametrize("wrong", [-1, 0, 1, 2])
@pytest.mark.parametrize("at", [5, 15, 25])
@pytest.mark.parametrize(
    ("decides", "observed"),
    [(leaves_a_hole, seen), (hands_over, seen), (target_with_a_hole, seen_consumer_group)],
)
def test_a_group_met_with_a_wrong_clock_gets_as_long_to_hand_partitions_over_as_any_other(
    decides: Callable[[int], list[GroupInput]],
    observed: Callable[[int], GroupObservation],
    at: int,
    wrong: int,
    off: int,
) -> None:
    inputs = in_order([*decides(at), *map(observed, range(10, 400, 10))])
    rows = lived(inputs, QUIET, wrong, off)
    told = {
        row.round: found.since for row in rows.group_health for found in row.findings if found.finding == "unassigned"
    }
    # All of these members have 300 s, and the rounds are 10 s apart.
    assert told == {at + 305: START + at * SECOND}


@pytest.mark.parametrize("off", [DAY, -DAY])
def test_a_leader_that_is_ahead_of_the_first_round_is_waited_for_though_its_clock_is_wrong(off: int) -> None:
    inputs: list[GroupInput] = [make_record(5, even("x", 3, "a", "b"))]
    inputs += [make_observation(second, make_topic("x", 2 if second < 20 else 3)) for second in (10, 20, 30)]
    assert [row.verdict for row in lived(inputs, QUIET).drift] == ["identical"]
    assert [row.verdict for row in lived(inputs, QUIET, 0, off).drift] == ["identical" if off > 0 else "unverified"]


def test_a_new_count_that_the_first_round_after_an_outage_shows_gets_all_of_its_grace() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")))
    seconds = [*range(10, 100, 10), *range(3_700, 5_000, 10)]
    observations = timed(
        make_observation(at, make_topic("x", 2 if at < 3_700 else 4), time=START + at * SECOND) for at in seconds
    )
    life.take(*observations.values())
    first = next(row.round for row in life.rows.group_health if "unassigned" in {f.finding for f in row.findings})
    assert first == 3_700 + CONFIG.metadata_grace_ms // SECOND
    assert [f.since for f in life.rows.group_health[-1].findings] == [START + 3_700 * SECOND]


def test_a_decision_made_while_nobody_looked_does_not_lie_in_the_future() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")))
    observations = timed(
        make_observation(at, make_topic("x", 2), time=START + at * SECOND) for at in (10, 20, 30, 9_000, 9_010)
    )
    life.take(*observations.values(), make_record(8_990, even("x", 2, "a", "b"), generation=2))
    assert [row.verdict for row in life.rows.drift] == ["identical", "identical"]


# The clock alone: (time, elapsed) of each round in s, its interpretation, and the shift of stored times.


def read(*rounds: tuple[int, int]) -> list[tuple[int, Shift | None]]:
    known = RoundClock()
    said = []
    for time, elapsed in rounds:
        shift = read_clock(known, time * SECOND, elapsed * SECOND)
        said.append((known.now // SECOND, shift))
    return said


def test_nothing_has_passed_for_certain_until_two_rounds_agree() -> None:
    known = RoundClock()
    passed = []
    for time, elapsed in ((90_000, 0), (1_010, 10), (1_020, 20), (90_000, 50), (1_040, 50)):
        read_clock(known, time * SECOND, elapsed * SECOND)
        passed.append(known.passed)
    assert passed == [-1, -1, 1_020 * SECOND, 1_020 * SECOND + 1, 1_040 * SECOND]


def test_a_clock_that_is_right_is_believed() -> None:
    assert read((1_000, 0), (1_010, 10), (1_040, 40)) == [(1_000, None), (1_010, None), (1_040, None)]


def test_a_jump_that_the_next_round_takes_back_was_none() -> None:
    assert read((1_000, 0), (1_010, 10), (90_000, 40), (1_030, 40)) == [
        (1_000, None),
        (1_010, None),
        (1_010, None),
        (1_030, None),
    ]


def test_nothing_of_a_jump_that_was_none_is_kept() -> None:
    known = RoundClock()
    for time, elapsed in ((1_000, 0), (90_000, 30), (1_030, 30)):
        read_clock(known, time, elapsed)
    assert known == RoundClock(ahead=1_000, sure=True, other=None, told=-1, now=1_030)


def test_a_minute_beside_the_steady_time_is_no_jump() -> None:
    assert read((1_000, 0), (1_010, 10), (1_080, 20)) == [(1_000, None), (1_010, None), (1_080, None)]
    assert read((1_000, 0), (1_010, 10), (1_081, 20)) == [(1_000, None), (1_010, None), (1_010, None)]
    assert read((1_000, 0), (1_010, 10), (960, 20)) == [(1_000, None), (1_010, None), (960, None)]
    assert read((1_000, 0), (1_010, 10), (959, 20)) == [(1_000, None), (1_010, None), (1_010, None)]


def test_after_an_outage_the_second_round_is_believed_and_times_kept_at_the_first_are_moved() -> None:
    assert read((1_000, 0), (1_010, 10), (5_000, 40), (5_010, 50)) == [
        (1_000, None),
        (1_010, None),
        (1_010, None),
        (5_010, Shift(1_010 * SECOND + 1, 3_990 * SECOND - 1)),
    ]


def test_where_the_first_round_of_all_was_wrong_all_times_kept_are_moved() -> None:
    assert read((90_000, 0), (1_010, 0), (1_020, 10))[-1] == (1_020, Shift(0, -88_990 * SECOND))


def test_a_clock_that_is_set_back_moves_all_times() -> None:
    assert read((9_000, 0), (9_010, 10), (5_000, 10), (5_010, 20))[-1] == (5_010, Shift(0, -4_010 * SECOND))


def test_without_steady_time_every_time_is_believed() -> None:
    assert [now for now, _ in read((1_000, 1_000), (90_000, 90_000), (1_020, 1_020))] == [1_000, 90_000, 1_020]

"""Probes that take turns: what one thing that happens to them leaves in the topic, and what anything does."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka import TopicPartition

from streaming.config import ProbeSettings, Settings, Thresholds
from streaming.events import encode
from streaming.probe import Probe
from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.run import RocketMQProbe
from streaming.probe.standby import turn
from streaming.probe.standby.others import patience_s
from streaming.probe.standby.turn import MOST_RECORDS, Tail
from streaming.records import RoundClosed, RoundOpened
from tests.examples import examples
from tests.job.source.fake_reader import FakeReader
from tests.probe.standby.simulated import INTERVAL, LEAST_ROUND, LONGEST, Appended, SimulatedProbe, World


def makers(world: World, since: float = 0.0) -> list[str]:
    """Who closed the rounds, in order."""
    return [each.probe for each in world.closed if each.at >= since]


def longest_pause(world: World) -> float:
    times = [each.at for each in world.closed]
    return max(after - before for before, after in pairwise(times))


@pytest.fixture
def world() -> World:
    """One probe has made the rounds for a minute."""
    world = World()
    world.start()
    world.run(60)
    return world


def test_a_second_probe_stands_by_and_leaves_one_mark(world: World) -> None:
    world.start()
    world.run(600)
    assert set(makers(world)) == {"p0"}
    [mark] = [each.record for each in world.log if each.probe == "p1"]
    assert mark.ends


def test_a_clean_end_hands_over_without_a_missing_interval(world: World) -> None:
    world.start()
    world.run(64)
    world.probes[0].stop()
    world.run(60)
    assert list(dict.fromkeys(makers(world))) == ["p0", "p1"]
    times = [each.at for each in world.closed]
    assert all(9 <= after - before <= 12 for before, after in pairwise(times)), times


@pytest.mark.parametrize("dies_after", [0.25, 0.5, 3.0, 9.75, 10.0, 10.25])
def test_a_dead_probe_is_followed_before_three_intervals_have_passed(world: World, dies_after: float) -> None:
    world.start()
    world.run(60 + dies_after)
    world.probes[0].kill()
    world.run(60)
    assert list(dict.fromkeys(makers(world))) == ["p0", "p1"]
    assert longest_pause(world) < 3 * INTERVAL - 2


def test_one_that_is_started_again_by_the_same_supervisor_waits_for_nobody() -> None:
    world = World()
    world.start("unit@host").kill()
    world.probes[0].alive = True
    world.run(60)
    world.probes[0].kill()
    world.start("unit@host")
    world.run(30)
    assert makers(world)[-3:] == ["p1", "p1", "p1"]
    assert longest_pause(world) <= INTERVAL


def test_hours_after_the_last_probe_died_nobody_waits(world: World) -> None:
    world.probes[0].kill()
    world.now += 3 * 3_600
    began = world.now
    world.start()
    world.run(3)
    assert makers(world, began) == ["p1"]


def test_a_supervisor_that_runs_two_at_a_time_costs_a_round_and_no_more() -> None:
    world = World()
    world.start("wrong")
    world.run(60)
    world.start("wrong")
    world.run(120)
    assert makers(world).count("p1") == 1
    assert makers(world)[-1] == "p0"


def test_a_probe_alone_reads_nothing_beside_its_first_look() -> None:
    world = World()
    probe = world.start()
    world.run(5 * INTERVAL)
    assert len(world.closed) == 5
    assert probe.reader.reads == 1


def test_a_round_is_not_made_by_a_memory_that_another_probe_has_made_old(world: World) -> None:
    world.probes[0].stop()
    second, third = world.start(), world.start()

    def one_round_and_away() -> None:
        third.takes = 0.0
        third.act()
        third.act()
        third.stop()

    # A probe reads the last round back between its first look and its opening record.
    second.writer.before_append = one_round_and_away
    second.act()
    assert [type(each.record) for each in world.log if each.probe == second.name] == [RoundOpened]
    world.run(30)
    assert makers(world)[-4:] == ["p2", "p1", "p1", "p1"]
    # The round that it opened first was given up.
    assert [each.record.round for each in world.closed if isinstance(each.record, RoundClosed)].count(
        next(each.offset for each in world.log if each.probe == "p1")
    ) == 0


def test_a_topic_that_is_created_again_leaves_one_maker_of_rounds(world: World) -> None:
    world.start()
    world.run(60)
    world.log.clear()
    world.run(120)
    assert set(makers(world)) == {"p0"}
    assert len(world.closed) == 12
    world.log.clear()
    world.probes[0].kill()
    world.run(60)
    assert set(makers(world)) == {"p1"}


def test_one_that_stood_still_for_days_while_standing_by_reads_no_more_than_the_end(world: World) -> None:
    standing = world.start()
    world.run(60)
    standing.suspended = True
    for _ in range(2 * MOST_RECORDS):
        world.append(RoundOpened(1, "another", "x", 10_000))
    world.run(200)
    before = standing.reader.read_records
    standing.suspended = False
    world.run(60)
    assert standing.reader.read_records - before < MOST_RECORDS + 100
    assert standing.stands_by
    assert set(makers(world)) == {"p0"}


_HOLDS = (
    "probe p0 makes the rounds of cluster 'prod'. This one takes over when that one ends, or closes no round for 25 s."
)


def test_each_change_is_told_in_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streaming.probe")
    world = World()
    first = world.start()
    world.run(20)
    world.start()
    world.run(30)
    first.stop()
    world.run(30)
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        f"Standing by: {_HOLDS}",
        "Took over the rounds of cluster 'prod': probe p0 has ended.",
    ]


@pytest.mark.parametrize(
    ("least_round_s", "interval_s"),
    [
        *((Probe.LEAST_ROUND_S, at) for at in (0.2, 1.0, 2.0, 5.0, 6.7, 7.0, 10.0, 30.0, 60.0, 600.0)),
        # From the default interval on.
        *((RocketMQProbe.LEAST_ROUND_S, at) for at in (10.0, 30.0, 60.0)),
    ],
)
def test_who_takes_over_from_a_dead_probe_closes_a_round_before_there_is_silence(
    least_round_s: float, interval_s: float
) -> None:
    patience = patience_s(interval_s, least_round_s)
    # From the dead probe's last closed round: the patience, a look of a second, and two seconds for the first round.
    assert patience + 3 <= Thresholds.load().silent_after_s(int(interval_s * 1000)), interval_s
    # A living one closes a round within this time, as long as it takes no longer than the interval.
    assert patience > max(2 * interval_s, least_round_s)


# What is read of the rounds topic, however much retention has taken and however full of others it is.


PLACE = TopicPartition("evenkeel.rounds", 0)


def topic(values: Iterable[bytes | None], first: int = 0) -> FakeReader:
    """The rounds topic, with records from an offset on."""
    reader = FakeReader()
    reader.end[PLACE] = reader.deleted_below[PLACE] = first
    reader.logs[PLACE] = []
    for value in values:
        reader.append(PLACE.topic, 0, value, time=5)
    return reader


def opened(cluster: str = "prod") -> bytes:
    return encode(RoundOpened(1, cluster, "p", 10_000))


OTHERS = [opened(), opened("another"), None, b"\xff\x00", b"[" * 9_000, b'{"type":"new","v":1}', opened()]


@pytest.mark.parametrize(
    ("reader", "end", "offsets"),
    [
        (topic(OTHERS), 7, [0, 6]),
        (topic([], first=40), 40, []),
        (topic([opened()] * 10, first=40), 45, [40, 41, 42, 43, 44]),
    ],
    ids=["others", "empty", "retention"],
)
def test_the_records_of_the_cluster_that_are_left_are_read(
    monkeypatch: pytest.MonkeyPatch, reader: FakeReader, end: int, offsets: list[int]
) -> None:
    monkeypatch.setattr(turn, "open_bus_reader", lambda _: reader)
    tail = Tail(Settings(cluster="prod", probe=ProbeSettings()))
    found = tail.read(0, end, Deadline.after(60))
    assert [(offset, time, record.cluster) for offset, time, record in found] == [(at, 5, "prod") for at in offsets]


HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(["start", "kill", "stop", "suspend", "resume", "fail", "slow", "clock", "down", "up", "race"]),
        st.integers(0, 2),
        st.sampled_from([0.5, 3.0, 9.75, 10.0, 14.0, 26.0, 40.0, 130.0]),
    ),
    min_size=3,
    max_size=14,
)


@settings(max_examples=examples(600), deadline=None, suppress_health_check=list(HealthCheck))
@given(HAPPENINGS)
def test_whatever_happens_one_probe_makes_the_rounds_and_none_is_missing_for_long(
    happenings: list[tuple[str, int, float]],
) -> None:
    world = World()
    for happening, which, passes in happenings:
        _let(world, happening, which)
        world.run(passes)
    world.down = False
    for probe in world.probes:
        probe.suspended, probe.fails, probe.takes = False, 0, 0.5
    if not any(probe.alive for probe in world.probes):
        world.start()
    # In peace again: at the latest after two patiences and a round there are rounds, by the pace that was told, ...
    interval_s = max([each.record.interval_ms / 1000 for each in world.log], default=INTERVAL)
    world.run(2 * patience_s(interval_s, LEAST_ROUND) + 4 * interval_s + LONGEST)
    quiet = world.now
    world.run(12 * INTERVAL)
    # ... of one probe, one an interval.
    last = [each for each in world.closed if each.at > quiet]
    assert len({each.probe for each in last}) == 1
    assert 11 <= len(last) <= 13
    assert _beside_an_older_run(world.log) == []


def _let(world: World, happening: str, which: int) -> None:
    living = [probe for probe in world.probes if probe.alive]
    if happening == "start" or not living:
        if len(living) < 3:
            # Steady clocks begin anywhere.
            world.start(clock_ahead_s=(-5_000.0, 0.0, 123_456.0)[which])
        return
    probe: SimulatedProbe = living[which % len(living)]
    match happening:
        case "kill":
            probe.kill()
        case "stop" if not probe.suspended:
            probe.stop()
        case "suspend":
            probe.suspended = True
        case "resume":
            probe.suspended = False
        case "fail":
            probe.fails += which + 1
        case "slow":
            probe.takes = (0.5, 12.0, 45.0)[which]
        case "clock":
            world.broker_ahead_s += (-3_600.0, 90.0, 3_600.0)[which]
        case "down" | "up":
            world.down = happening == "down"
        case "race":
            other = living[(which + 1) % len(living)]
            if other is not probe:
                probe.writer.before_append = other.act
        case _:
            pass


def _beside_an_older_run(log: list[Appended]) -> list[int]:
    """Offsets of closing records of rounds that their probe opened although an older run had just opened one.

    "Just": since the first round of its own run. The older run may have said since then that it ended.
    """
    runs: dict[str, int] = {}
    numbers: dict[int, int] = {}
    going_on: dict[str, list[tuple[int, int]]] = {}
    found = []
    for each in log:
        record = each.record
        if isinstance(record, RoundOpened) and record.ends:
            going_on.pop(each.probe, None)
        elif isinstance(record, RoundOpened):
            runs[each.probe] = each.offset if record.since is None else record.since
            numbers[each.offset] = runs[each.probe]
            beside = [
                offset
                for probe, openings in going_on.items()
                for offset, number in openings
                if probe != each.probe and runs[each.probe] <= offset and number < runs[each.probe]
            ]
            if beside:
                numbers[each.offset] = -1
            going_on.setdefault(each.probe, []).append((each.offset, runs[each.probe]))
        elif numbers[record.round] == -1:
            found.append(each.offset)
    return found

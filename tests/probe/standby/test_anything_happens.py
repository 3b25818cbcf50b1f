"""Probes to which anything happens: killed, suspended, slow, raced, with a broker that is away or has another clock."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.probe.standby import patience_s
from streaming.records import RoundOpened
from tests.examples import examples
from tests.probe.standby.simulated import INTERVAL, LEAST_ROUND, LONGEST, Appended, SimulatedProbe, World

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

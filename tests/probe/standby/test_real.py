"""Several probes on one cluster, on a real broker: who makes the rounds, and who stands by."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.config import Settings, environment_of
from streaming.lifecycle import SUPERVISOR
from streaming.probe import Probe
from streaming.probe.deadline import AnotherProbeError
from streaming.probe.standby.others import Identity
from streaming.probe.writer import Opened, RoundWriter
from tests.patience import until
from tests.probe.witness import Cluster, MakeSettings, closed_of, rounds_of
from tests.started import Started, unconfigured

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

INTERVAL_MS = 1_000


def makers(settings: Settings) -> list[str]:
    """The probes that closed rounds, each once, in order."""
    return list(dict.fromkeys(record.probe for record in closed_of(settings)))


def wait_for_rounds(settings: Settings, more: int) -> None:
    """Until so many more rounds have closed."""
    before = len(closed_of(settings))
    until(lambda: len(closed_of(settings)) >= before + more)


@pytest.fixture
def watched(cluster: Cluster, make_settings: MakeSettings) -> Settings:
    cluster.commit("g", cluster.topic(), [1])
    settings = make_settings(interval_ms=INTERVAL_MS)
    with Probe(settings, who=Identity("created", None)) as probe:
        probe.round()
    return settings


@pytest.fixture
def start(watched: Settings, tmp_path: Path) -> Iterator[Callable[[str], Started]]:
    command = [sys.executable, "-m", "streaming.probe"]
    environment = unconfigured() | environment_of(watched) | {SUPERVISOR: ""}
    with ExitStack() as running:
        yield lambda name: running.enter_context(Started(command, tmp_path / name, environment))


@pytest.mark.nightly
def test_a_second_process_stands_by_and_takes_over_at_an_end_and_after_a_kill(
    watched: Settings, start: Callable[[str], Started]
) -> None:
    first = start("first")
    wait_for_rounds(watched, 2)
    second = start("second")
    second.until(lambda: "Standing by" in second.said)
    wait_for_rounds(watched, 2)
    assert len(makers(watched)) == 2  # the one that created the topics, and the first
    first.stop()
    wait_for_rounds(watched, 3)
    assert "Took over the rounds" in second.said
    assert len(makers(watched)) == 3
    third = start("third")
    third.until(lambda: "Standing by" in third.said)
    wait_for_rounds(watched, 1)
    second.end(signal.SIGKILL)
    wait_for_rounds(watched, 2)
    assert "has closed no round for 1" in third.said
    assert len(makers(watched)) == 4
    third.stop()
    # Never two at a time: every round was opened after the one before was closed, or given up.
    numbers = [record.round for record in closed_of(watched)]
    assert numbers == sorted(numbers)
    changes = [record.probe for record in closed_of(watched)]
    assert changes == sorted(changes, key=makers(watched).index)
    assert [each.said.count("Traceback") for each in (first, second, third)] == [0, 0, 0]


def test_of_two_that_open_a_round_at_the_same_moment_one_closes_it(
    watched: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = RoundWriter.open
    with Probe(watched, who=Identity("a", None)) as one, Probe(watched, who=Identity("b", None)) as other:

        def after_the_other(self: RoundWriter, *arguments: object) -> Opened:
            with monkeypatch.context() as patch:
                patch.setattr(RoundWriter, "open", opens)
                other.round()
            return opens(self, *arguments)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(RoundWriter, "open", after_the_other)
            with pytest.raises(AnotherProbeError, match="probe b makes the rounds"):
                one.round()
        other.round()
        with pytest.raises(AnotherProbeError):
            one.round()
    assert makers(watched) == ["created", "b"]


def test_a_probe_that_stands_by_is_stopped_at_once_and_leaves_the_rounds_alone(watched: Settings) -> None:
    stop = threading.Event()
    with Probe(watched, who=Identity("a", None)) as one, Probe(watched, stop, who=Identity("b", None)) as other:
        one.round()
        with pytest.raises(AnotherProbeError):
            other.round()
        before = len(rounds_of(watched))
        ended: list[str] = []

        def stand_by() -> None:
            try:
                other.stand_by()
            except Exception as error:  # noqa: BLE001 - it is what the test looks at
                ended.append(type(error).__name__)

        waits = threading.Thread(target=stand_by)
        waits.start()
        one.round()
        stop.set()
        waits.join(30)
        assert ended == ["StopRequestedError"]
    # A round of the first, and the mark of its end.
    assert len(rounds_of(watched)) == before + 3

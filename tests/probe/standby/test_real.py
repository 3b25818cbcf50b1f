"""Several probes on one cluster, on a real broker: who makes the rounds, and who stands by."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streaming.config import Settings, environment_of
from streaming.lifecycle import SUPERVISOR
from streaming.probe import Probe
from streaming.probe.deadline import AnotherProbeError
from streaming.probe.standby.others import Identity
from streaming.probe.writer import Opened, RoundWriter
from streaming.records import RoundClosed
from tests.patience import until
from tests.probe.witness import Cluster, MakeSettings, rounds_of

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

INTERVAL_MS = 1_000


class Process:
    """A probe as a process."""

    def __init__(self, settings: Settings, log: Path, supervisor: str = "") -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("EVENKEEL_")}
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streaming.probe"],
                env=clean | environment_of(settings) | {SUPERVISOR: supervisor},
                stdout=out,
                stderr=out,
            )

    @property
    def said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def end(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        return self._process.wait(60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(60)


class Rounds:
    """The records of the rounds topic so far."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def closed(self) -> list[RoundClosed]:
        return [record for _, record in rounds_of(self._settings) if isinstance(record, RoundClosed)]

    def makers(self) -> list[str]:
        """The probes that closed rounds, each once, in order."""
        return list(dict.fromkeys(record.probe for record in self.closed()))

    def wait(self, more: int) -> None:
        """Until so many more rounds have closed."""
        before = len(self.closed())
        until(lambda: len(self.closed()) >= before + more)


@pytest.fixture
def watched(cluster: Cluster, make_settings: MakeSettings) -> Settings:
    cluster.commit("g", cluster.topic(), [1])
    settings = make_settings(interval_ms=INTERVAL_MS)
    with Probe(settings, who=Identity("created", None)) as probe:
        probe.round()
    return settings


@pytest.fixture
def start(watched: Settings, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def make(supervisor: str = "") -> Process:
        started.append(Process(watched, tmp_path / f"{len(started)}.log", supervisor))
        return started[-1]

    yield make
    for process in started:
        process.kill()


@pytest.mark.nightly
def test_a_second_process_stands_by_and_takes_over_at_an_end_and_after_a_kill(
    watched: Settings, start: Callable[..., Process]
) -> None:
    rounds = Rounds(watched)
    first = start()
    rounds.wait(2)
    second = start()
    until(lambda: "Standing by" in second.said)
    rounds.wait(2)
    assert len(rounds.makers()) == 2  # the one that created the topics, and the first
    assert first.end(signal.SIGTERM) == 0
    rounds.wait(3)
    assert "Took over the rounds" in second.said
    assert len(rounds.makers()) == 3
    third = start()
    until(lambda: "Standing by" in third.said)
    rounds.wait(1)
    second.kill()
    rounds.wait(2)
    assert "has closed no round for 1" in third.said
    assert len(rounds.makers()) == 4
    assert third.end(signal.SIGTERM) == 0
    # Never two at a time: every round was opened after the one before was closed, or given up.
    records = [record for _, record in rounds_of(watched)]
    numbers = [record.round for record in records if isinstance(record, RoundClosed)]
    assert numbers == sorted(numbers)
    changes = [record.probe for record in records if isinstance(record, RoundClosed)]
    assert changes == sorted(changes, key=rounds.makers().index)
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
    assert Rounds(watched).makers() == ["created", "b"]


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

"""The alerter as a part of the server: it judges the same lake, and no page query delays it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.alerts.build import DRIFT, Writer
from tests.alerts.living import drifted
from tests.alerts.receiver import Receiver
from tests.serve.running import running

pytestmark = pytest.mark.turn(6)


def _given(folder: Path, writer: Writer) -> dict[str, str]:
    (folder / "alerts.yaml").write_text(f"rules:\n{DRIFT}")
    return {
        "EVENKEEL_CLUSTER": "c",
        "EVENKEEL_LAKE": writer.root,
        "EVENKEEL_ALERTS__RULES": str(folder / "alerts.yaml"),
        "EVENKEEL_ALERTS__LOOK_MS": "200",
    }


def _until(done: Callable[[], bool], seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, what
        time.sleep(0.1)


def test_the_server_delivers_alerts_unless_they_are_off(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(0, {})
    given = _given(tmp_path, writer)
    with Receiver() as receiver:
        given |= {"EVENKEEL_ALERTS__TARGETS__OPS": receiver.url}
        with running(writer.root, tmp_path / "off.log", **given):
            writer.write(1, {"drift": drifted("a")})
        assert writer.transitions() == []
        with running(writer.root, tmp_path / "on.log", EVENKEEL_SERVE__ALERTS="true", **given):
            writer.write(2, {"drift": drifted("b")})
            receiver.wait(1)
            _until(lambda: len(writer.transitions()) == 2, 60, "both are decided")
    assert {row["group_id"] for row in writer.transitions()} == {"a", "b"}


def test_page_queries_that_hang_and_take_all_they_can_delay_no_alert(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(0, {})
    hogged = subprocess.Popen(
        [sys.executable, "-m", "tests.serve.hogged"],
        env=os.environ | _given(tmp_path, writer),
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
    )
    try:
        assert hogged.stdout is not None
        assert hogged.stdout.readline() == b"hogged\n"
        _until(lambda: Path(writer.root, "alerts").is_dir(), 60, "the alerter begins")
        time.sleep(3)
        for number in range(1, 4):
            writer.write(number, {"drift": drifted(f"g{number}")})
            _until(lambda so_far=number: len(writer.transitions()) == so_far, 15, "an alert fires within seconds")
        assert hogged.poll() is None
    finally:
        hogged.kill()
        hogged.wait()

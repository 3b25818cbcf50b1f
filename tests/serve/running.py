"""The server as users start it: `evenkeel serve` on a free port."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.demo.ports import free_port

__all__ = ["EVENKEEL", "get", "pause", "running"]

EVENKEEL = str(Path(sys.executable).with_name("evenkeel"))

_PAUSE_S = 0.05
"""Without a pause, the asking takes as much processor time as the answer."""


@contextmanager
def running(
    lake: Path | str, log: Path, *, until: str = "ok silent", **environment: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The process, once `/health` says one of some words; yields its address."""
    port = free_port()
    given = {**os.environ, "EVENKEEL_SERVE__REFRESH_MS": "500", "EVENKEEL_SERVE__ALERTS": "false", **environment}
    with log.open("wb") as output:
        command = [EVENKEEL, "serve", "--lake", str(lake), "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=given)
        try:
            address = f"http://127.0.0.1:{port}"
            while _status(address) not in until.split():
                if process.poll() is not None:
                    pytest.fail(log.read_text())
                pause()
            yield address, process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def pause() -> None:
    """Between two questions of a test that asks until the answer is there."""
    threading.Event().wait(_PAUSE_S)


def _status(address: str) -> str:
    status, said = get(f"{address}/health")
    return str(json.loads(said)["status"]) if status == 200 else ""


def get(address: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""

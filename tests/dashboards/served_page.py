"""The page as users start it: `evenkeel dash` on a free port."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port

__all__ = ["served"]

REFRESH_MS = 500


@contextmanager
def served(lake: Path, log: Path, first: str = "") -> Iterator[str]:
    """Serve the page over a lake; yields its address. `first` is Python that its process runs before."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("evenkeel")), "dash", "--lake", str(lake), "--port", str(port)]
    if first:
        command = [sys.executable, "-c", f"{first}\nfrom dashboards.serve import serve\nserve({str(lake)!r}, {port})"]
    environment = {**os.environ, "EVENKEEL_PAGE__REFRESH_MS": str(REFRESH_MS)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            _await(f"http://127.0.0.1:{port}/_stcore/health", process, log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            try:
                code = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert code == 0
        told = log.read_text()
        assert "Traceback" not in told, told


def _await(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None:
                pytest.fail(f"the page ended with {process.returncode}: {log.read_text()[-2000:]}")
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue

"""The sign of life: the URL is asked after a poll that has judged a round, and after no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.alerts.build import DRIFT
from tests.alerts.living import Living, drifted

pytestmark = pytest.mark.turn(3)


class _Pinged:
    def __init__(self) -> None:
        self.paths: list[str] = []
        self.code = 200
        self.came = threading.Semaphore(0)

    def wait(self) -> None:
        assert self.came.acquire(timeout=60)


@contextmanager
def _pinged() -> Iterator[tuple[str, _Pinged]]:
    pinged = _Pinged()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pinged.paths.append(self.path)
            self.send_response(pinged.code)
            self.send_header("Content-Length", "0")
            self.end_headers()
            pinged.came.release()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/ping/s3cret", pinged
    finally:
        server.shutdown()
        server.server_close()


def test_the_url_is_asked_after_looks_that_have_judged_a_round_and_once_a_minute_at_most(tmp_path: Path) -> None:
    with _pinged() as (url, pinged):
        living = Living(tmp_path, DRIFT, heartbeat_url=url)
        living.poll()
        living.round(0, drift=drifted("a"))
        pinged.wait()
        for number in range(1, 6):
            living.round(number)
        # Nothing new to judge: no sign of life, however much time goes by.
        for _ in range(5):
            living.poll(living.wall_ms + 120_000)
        assert len(pinged.paths) == 1
        living.round(20)
        pinged.wait()
        living.stop()
    assert pinged.paths == ["/ping/s3cret"] * 2


def test_a_url_that_fails_is_logged_once_and_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with _pinged() as (url, pinged):
        pinged.code = 500
        living = Living(tmp_path, DRIFT, heartbeat_url=url)
        for number in (0, 10, 20):
            living.round(number)
            pinged.wait()
        living.stop()
    said = [record.message for record in caplog.records if "heartbeat" in record.message]
    assert said == ["the heartbeat URL did not take a sign of life: it answered HTTP 500"]
    assert "s3cret" not in caplog.text

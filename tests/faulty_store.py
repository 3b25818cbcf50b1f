"""A proxy in front of an object store that answers 503, resets connections, loses answers or waits, as a test demands.

It is a process of its own: deltalake's file handler holds Python's lock while it asks a store, so a proxy in the same
process would wait for it for ever.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NOTHING = "nothing"
"""Everything is passed on."""

BUSY = "busy"
"""Every request gets 503."""

RESET = "reset"
"""Every connection is reset before the store sees the request."""

RESET_COMMITS = "reset-commits"
"""Commits to Delta tables are."""

LOSE_COMMITS = "lose-commits"
"""Commits to Delta tables reach the store; the answer to the first attempt at each version is lost."""

HOLD = "hold "
"""With a regular expression after it: requests whose method and path it fits wait, and are reset in the end unseen."""

HOLD_ANSWERS = "hold-answers "
"""Likewise, but the store sees them, and their answers wait."""


class FaultyStore:
    """The proxy, from `with` to its end."""

    def __init__(self, upstream_port: int) -> None:
        command = [sys.executable, "-m", "tests.faulty_store", str(upstream_port)]
        # Where a Spark session ran in this process, its children do not search the working folder.
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.endpoint = self._answer()

    def fail(self, how: str) -> int:
        """Let requests fail from now on; returns how many have failed before."""
        self._process.stdin.write(f"{how}\n")
        self._process.stdin.flush()
        return int(self._answer())

    def _answer(self) -> str:
        return self._process.stdout.readline().strip()

    def __enter__(self) -> FaultyStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream_port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream_port = upstream_port
        self.how, self.failed = NOTHING, 0
        self.changed = threading.Condition()
        self._seen: set[str] = set()

    def handle_error(self, *_: object) -> None:
        pass  # a client that was killed

    def fault(self, method: str, path: str) -> str:
        """What goes wrong with a request."""
        is_commit = method == "PUT" and "/_delta_log/" in path and path.endswith(".json")
        how = self.how
        for hold in (HOLD, HOLD_ANSWERS):
            if how.startswith(hold):
                if not re.search(how.removeprefix(hold), f"{method} {path}"):
                    return NOTHING
                how = hold
        if how in (RESET_COMMITS, LOSE_COMMITS) and not is_commit:
            return NOTHING
        if how == LOSE_COMMITS:
            if path in self._seen:
                return NOTHING
            self._seen.add(path)
        self.failed += how != NOTHING
        return how

    def wait(self) -> None:
        """Wait until something else goes wrong."""
        with self.changed:
            now = self.how
            self.changed.wait_for(lambda: self.how != now)

    def change(self, how: str) -> None:
        with self.changed:
            self.how = how
            self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault(self.command, self.path)
        if fault == BUSY:
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault == HOLD:
            self.server.wait()
        if fault in (RESET, RESET_COMMITS, HOLD):
            self._reset()
            return
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream_port, timeout=30)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            upstream.putheader(name, value)
        upstream.endheaders(body or None)
        answer = upstream.getresponse()
        said = answer.read()
        upstream.close()
        if fault == HOLD_ANSWERS:
            self.server.wait()
        if fault in (LOSE_COMMITS, HOLD_ANSWERS):
            self._reset()
            return
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"connection", "transfer-encoding", "content-length"}:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(said))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815 - the base class's names

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def finish(self) -> None:
        with contextlib.suppress(OSError):  # it was reset
            super().finish()

    def log_message(self, *_: object) -> None:
        pass


def _main() -> None:
    server = _Server(int(sys.argv[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    for line in sys.stdin:
        server.change(line.strip())
        print(server.failed, flush=True)


if __name__ == "__main__":
    _main()

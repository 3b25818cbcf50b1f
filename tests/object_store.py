"""A real S3 server on loopback: versitygw over a folder, which `python -m tests.programs store` builds.

It honours conditional puts under a lock of each object (in its source, and by `tests/tables/test_object_store.py`).
moto, which pip could install, checks the condition and writes without one, so that two writers can both win.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path

from streaming.demo.ports import free_port
from streaming.places import cache_folder
from streaming.process import GuardedProcess

ACCESS_KEY, SECRET_KEY = "evenkeel-tests", "a-secret-of-the-tests"

_START_S = 60


def versitygw() -> Path | None:
    """The server's program; None where it was not built."""
    return next(iter(sorted(cache_folder().glob("versitygw-*"))), None)


class ObjectStore:
    """One server with its buckets, from `with` to its end; `stop` and `start` in between are an outage."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "buckets"
        self._log = folder / "versitygw.log"
        self.port = free_port()
        self._process: GuardedProcess | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which a process reaches it."""
        return environment_of(self.endpoint)

    def bucket(self, name: str) -> str:
        """Create a bucket; returns its URI."""
        (self._folder / name).mkdir(parents=True)
        return f"s3://{name}"

    def objects(self, uri: str) -> list[str]:
        """Keys of all objects below a URI, without it."""
        root = self._folder / uri.removeprefix("s3://")
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())

    def path(self, uri: str) -> Path:
        """The file of an object."""
        return self._folder / uri.removeprefix("s3://")

    def start(self) -> None:
        program = versitygw()
        assert program is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        self._process = GuardedProcess(
            [program, "--port", f"127.0.0.1:{self.port}", "--quiet", "posix", self._folder],
            log=self._log,
            environment={"ROOT_ACCESS_KEY_ID": ACCESS_KEY, "ROOT_SECRET_ACCESS_KEY": SECRET_KEY},
        )
        deadline = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, "versitygw does not answer"
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def __enter__(self) -> ObjectStore:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def environment_of(endpoint: str) -> dict[str, str]:
    """Variables by which a process reaches the store at an endpoint, which may be a proxy before it."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        # No library asks the machine's cloud, on which the tests may run.
        "AWS_EC2_METADATA_DISABLED": "true",
    }

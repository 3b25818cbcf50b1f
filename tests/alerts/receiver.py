"""A web server on loopback that receives messages, and fails on request."""

from __future__ import annotations

import json
import threading
from typing import Any

from tests.loopback import Asked, Loopback

__all__ = ["Receiver"]


class Receiver(Loopback):
    """Receives JSON messages; a context manager.

    Attributes:
        messages: Complete messages in order, including those answered with an error.
        arrived: Released once per message.
        codes: HTTP codes of the next answers; then 200.
        answers: While it is cleared, all answers are held back.
    """

    def __init__(self, *codes: int) -> None:
        super().__init__()
        self.messages: list[dict[str, Any]] = []
        self.arrived = threading.Semaphore(0)
        self.codes = list(codes)
        self.answers = threading.Event()
        self.answers.set()

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        self.messages.append(json.loads(asked.body))
        code = self.codes.pop(0) if self.codes else 200
        self.arrived.release()
        self.answers.wait(60)
        return code, b""

    @property
    def url(self) -> str:
        """Its Apprise URL, which contains secrets."""
        return f"json://user:hunter2secret@127.0.0.1:{self.port}/hook/t0ken-in-the-path?-key=s3cret-param"

    def wait(self, count: int = 1) -> None:
        """Wait for messages."""
        for _ in range(count):
            assert self.arrived.acquire(timeout=60), f"only {len(self.messages)} messages arrived"

    def told(self) -> list[tuple[str, str]]:
        """State and group of each message."""
        return [(m["state"], m.get("group_id", "")) for m in self.messages]

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        super().__exit__()

"""What a client that sends or reads slowly may cost: a connection for some seconds, and no copy of a body."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["SharedBody", "TimedConnection"]

_SLICE: Final = 64 * 1024


class TimedConnection(H11Protocol):
    """uvicorn's connection, which by itself waits for ever for a head and for a reader.

    Without these limits a client that opens connections and says nothing would use up `limit_concurrency`.

    Attributes:
        head_s: A request's head must be there within this time after the connection, or after the answer before.
        read_s: What is buffered of an answer, some 64 KB, must be read within this time.
    """

    head_s = 10.0
    read_s = 30.0

    _head: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a head."""
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head that comes byte by byte gets no more time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget_head()
        else:
            self._expect_head()

    def pause_writing(self) -> None:
        """The buffer is full: the reader has some time."""
        super().pause_writing()
        self._reader = self._reader or self.loop.call_later(self.read_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The buffer was read."""
        super().resume_writing()
        self._forget_reader()

    def timeout_keep_alive_handler(self) -> None:
        """No further request came. A close waits until everything was read, so that, too, gets a limit."""
        super().timeout_keep_alive_handler()
        self._reader = self._reader or self.loop.call_later(self.read_s, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        super().connection_lost(exc)
        self._forget_head()
        self._forget_reader()

    def _expect_head(self) -> None:
        self._head = self._head or self.loop.call_later(self.head_s, self.transport.abort)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _forget_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None


class SharedBody(Response):
    """Bytes that many answers share: sent in slices, so that a slow reader holds one slice and not a copy."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body: Any = memoryview(self.body)
        for begin in range(0, len(body), _SLICE):
            part = bytes(body[begin : begin + _SLICE])
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

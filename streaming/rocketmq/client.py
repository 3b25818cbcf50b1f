"""A client that asks many servers many questions at once, over one connection each, and never waits beyond its time.

It only asks: it sends no heartbeat, so no broker takes it for a member of a group.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Self

from streaming.rocketmq.frames import Credentials, Frame, Malformed, encode_frame, signed, take_frames

_VERSION: Final = 401
"""V4_9_4, from which on name servers answer in strict JSON; later ordinals would claim what we are not."""

_DEFAULT_PORT: Final = 9876

_IN_FLIGHT = 32
"""Questions without an answer per server. A broker works on 16 at a time (`adminBrokerThreadPoolNums`); a queue of that
length keeps it busy without holding up its own tools."""

_CONNECT_S = 2.0
"""A server that can be reached takes a connection within milliseconds, across continents within a second."""

_CHUNK = 256 * 1024


class Request(IntEnum):
    """What is asked (`RequestCode`). None of these changes anything, and none makes the asker a member of a group."""

    GET_ALL_CONSUMER_OFFSET = 43
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    GET_CONSUMER_RUNNING_INFO = 307


@dataclass(frozen=True, slots=True)
class Question:
    """One request to one server.

    Attributes:
        address: "host:port" of the server.
        code: What is asked.
        fields: Its `extFields`.
        seconds: How long an answer may take once it was sent, where the server passes the question on: its silence says
            nothing about the server. None for as long as the call of `ask` has.
        body: The request's body; None for none.
    """

    address: str
    code: int
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    seconds: float | None = None
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer came.

    Attributes:
        reason: Why, as a clause: "connection refused", "no answer within 3 s".
        late: The time was over; else the connection failed or what came was no answer.
    """

    reason: str
    late: bool = False


Answer = Frame | Unanswered


class _ConnectionLost(Exception):
    """The connection is no more; the text says why."""


class _Call:
    """One call of `ask`.

    Attributes:
        questions: In the order of the answers.
        answers: Those that have come; the others are late.
        end: When it is over, on the steady clock.
    """

    def __init__(self, questions: Sequence[Question], seconds: float) -> None:
        self.questions, self.seconds = questions, seconds
        self.answers: list[Answer] = [_late(seconds)] * len(questions)
        self.end = time.monotonic() + seconds


class _Server:
    """A server, and the connection to it, which is kept from one call of `ask` to the next.

    Attributes:
        down: Why it could not be reached, or that it said nothing; None while it may be asked.
    """

    def __init__(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.address = address
        self.down: str | None = None
        self._tls = tls
        self._incoming = bytearray()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @property
    def is_open(self) -> bool:
        return self._streams is not None

    async def open(self, end: float) -> None:
        """Connect, unless it is open; raises `_ConnectionLost`."""
        if self.down is None and self._streams is None:
            try:
                host, port = _host_and_port(self.address)
                async with asyncio.timeout_at(min(end, time.monotonic() + _CONNECT_S)):
                    self._streams = await asyncio.open_connection(host, port, ssl=self._tls, limit=_CHUNK)
            except TimeoutError:
                self.down = f"no connection within {_CONNECT_S:.0f} s"
            except (OSError, ValueError, UnicodeError) as error:
                self.down = _why(error)
        if self.down is not None:
            raise _ConnectionLost(self.down)

    def send(self, frame: Frame) -> None:
        assert self._streams is not None  # noqa: S101 - it is open
        self._streams[1].write(encode_frame(frame))

    async def read(self, until: float) -> list[Frame]:
        """The frames that come next; [] where none has come until then. Raises `_ConnectionLost`."""
        assert self._streams is not None  # noqa: S101 - it is open
        try:
            async with asyncio.timeout_at(until) as limit:
                data = await self._streams[0].read(_CHUNK)
        except OSError as error:
            if isinstance(error, TimeoutError) and limit.expired():
                return []
            raise _ConnectionLost(_why(error)) from error
        if not data:
            message = "the server closed the connection"
            raise _ConnectionLost(message)
        self._incoming += data
        frames = take_frames(self._incoming)
        if frames and isinstance(frames[-1], Malformed):
            message = f"it sends what is no frame ({frames[-1].reason})"
            raise _ConnectionLost(message)
        return [frame for frame in frames if isinstance(frame, Frame)]

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
        self._streams = None
        self._incoming.clear()


class Client:
    """Connections to the servers of one cluster. A context manager; not for several threads.

    A connection that was lost is opened again by the next question. If one that served an earlier call of `ask` is lost
    before it has answered anything, its questions are asked again, once: the server may have been started again
    meanwhile.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, credentials: Credentials | None = None) -> None:
        """Nothing is opened yet.

        Args:
            tls: For servers that want TLS; None for plain connections.
            credentials: For servers with access control.
        """
        self._tls, self._credentials = tls, credentials
        self._servers: dict[str, _Server] = {}
        self._runner = asyncio.Runner()
        # The event loop has a thread of its own: the caller's may run one already, as a notebook's does.
        self._thread = ThreadPoolExecutor(1, "rocketmq")
        self._opaque = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._thread.submit(self._close).result()
        self._thread.shutdown()

    def _close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._runner.close()

    def forgive(self) -> None:
        """Try servers again that could not be reached or said nothing; until then questions to them fail at once."""
        for server in self._servers.values():
            server.down = None

    def ask(self, questions: Sequence[Question], seconds: float) -> list[Answer]:
        """Ask all questions and return their answers in the same order, after `seconds` at the latest.

        An answer is a frame with whatever code, or the reason why there is none.
        """
        return self._thread.submit(self._runner.run, self._ask(_Call(questions, seconds))).result()

    async def _ask(self, call: _Call) -> list[Answer]:
        of_server: dict[str, deque[int]] = {}
        for index, question in enumerate(call.questions):
            of_server.setdefault(question.address, deque()).append(index)
        for address in of_server:
            self._servers.setdefault(address, _Server(address, self._tls))
        await asyncio.gather(*[self._converse(self._servers[at], waiting, call) for at, waiting in of_server.items()])
        return call.answers

    async def _converse(self, server: _Server, waiting: deque[int], call: _Call) -> None:
        """Ask one server its questions, and note its answers."""
        is_old, is_silent, has_answered = server.is_open, False, False
        asked: dict[int, tuple[int, float]] = {}  # index and end of the wait, by opaque number
        try:
            await server.open(call.end)
            while (waiting or asked) and time.monotonic() < call.end:
                while waiting and len(asked) < _IN_FLIGHT:
                    index = waiting.popleft()
                    limit = call.questions[index].seconds
                    asked[self._send(server, call.questions[index])] = (
                        index,
                        call.end if limit is None else min(call.end, time.monotonic() + limit),
                    )
                for frame in await server.read(min(due for _, due in asked.values())):
                    # What is no answer is a request of the server to its clients. Answers that were given up have no
                    # entry.
                    if frame.is_answer and frame.opaque in asked:
                        call.answers[asked.pop(frame.opaque)[0]] = frame
                        has_answered = True
                for opaque, (index, due) in list(asked.items()):
                    if time.monotonic() >= due:
                        del asked[opaque]
                        limit = call.questions[index].seconds
                        is_silent |= limit is None
                        call.answers[index] = _late(call.seconds if limit is None else limit)
        except _ConnectionLost as error:
            server.close()
            waiting.extendleft(sorted((index for index, _ in asked.values()), reverse=True))
            if is_old and not has_answered:
                await self._converse(server, waiting, call)
                return
            for index in waiting:
                call.answers[index] = Unanswered(str(error))
        if is_silent and not has_answered:
            # Its connection may be dead without a word.
            server.close()
            server.down = _late(call.seconds).reason

    def _send(self, server: _Server, question: Question) -> int:
        """Send a question; returns its opaque number."""
        self._opaque = (self._opaque + 1) % 2**31
        fields = dict(question.fields)
        if self._credentials is not None:
            fields = signed(fields, question.body, self._credentials)
        frame = Frame(int(question.code), self._opaque, version=_VERSION, fields=fields or None, body=question.body)
        server.send(frame)
        return self._opaque


def _late(seconds: float) -> Unanswered:
    return Unanswered(f"no answer within {seconds:.1f} s", late=True)


def _host_and_port(address: str) -> tuple[str, int]:
    """Parts of "host:port", "[address]:port" or "host"."""
    host, colon, port = address.strip().rpartition(":")
    if not colon or "]" in port:
        return address.strip().strip("[]"), _DEFAULT_PORT
    return host.strip("[]"), int(port)


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'no answer in TLS'}"
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno).lower()
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()

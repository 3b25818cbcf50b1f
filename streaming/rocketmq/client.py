"""A client that asks many servers many questions at once, over one connection each, and never waits beyond its time.

It only asks: it sends no heartbeat, so no broker takes it for a member of a group. Everything is done by the thread
that calls `ask`.
"""

from __future__ import annotations

import selectors
import ssl
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from streaming.rocketmq.codes import NAMES
from streaming.rocketmq.connection import Connection, ConnectionLost
from streaming.rocketmq.frames import Credentials, Frame, encode_frame, signed

_VERSION: Final = 401
"""V4_9_4, from which on name servers answer in strict JSON; later ordinals would claim what we are not."""

_IN_FLIGHT = 32
"""Questions without an answer per server. A broker works on 16 at a time (`adminBrokerThreadPoolNums`); a queue of that
length keeps it busy without holding up its own tools."""

_CONNECT_S = 2.0
"""A server that can be reached takes a connection within milliseconds, across continents within a second."""

_MOST_BYTES = 256 * 1024 * 1024
"""Bodies that one call of `ask` holds. A cluster of thousands of groups tells some tens of MB in a round."""


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


@dataclass(slots=True)
class _Asked:
    index: int
    question: Question
    due: float


class _Servers:
    """The connections of a client, and what it knows of servers between two calls of `ask`."""

    def __init__(self, tls: ssl.SSLContext | None, credentials: Credentials | None) -> None:
        self.selector = selectors.DefaultSelector()
        self.connections: dict[str, Connection] = {}
        self.down: dict[str, str] = {}
        self.sent: Counter[str] = Counter()
        self.opened = 0
        self._tls = tls
        self._credentials = credentials
        self._opaque = 0

    def open(self, address: str) -> None:
        """Begin to connect.

        Raises:
            ConnectionLost: The address is none, or unknown.
        """
        self.connections[address] = Connection(address, self._tls, self.selector)
        self.opened += 1

    def drop(self, address: str) -> None:
        """Close the connection, if there is one."""
        connection = self.connections.pop(address, None)
        if connection is not None:
            connection.close()

    def send(self, question: Question) -> int:
        """Send a question over its server's connection; returns its opaque number."""
        self._opaque = opaque = (self._opaque + 1) % 2**31
        fields = dict(question.fields)
        if self._credentials is not None:
            fields = signed(fields, question.body, self._credentials)
        frame = Frame(int(question.code), opaque, version=_VERSION, fields=fields or None, body=question.body)
        self.connections[question.address].send(encode_frame(frame))
        self.sent[NAMES.get(question.code, str(question.code))] += 1
        return opaque


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
        self._servers = _Servers(tls, credentials)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def sent(self) -> Counter[str]:
        """Requests sent since it was last cleared, by their name."""
        return self._servers.sent

    @property
    def opened(self) -> int:
        """Connections opened so far."""
        return self._servers.opened

    def close(self) -> None:
        """Close all connections."""
        for address in list(self._servers.connections):
            self._servers.drop(address)
        self._servers.selector.close()

    def forgive(self) -> None:
        """Try servers again that could not be reached or said nothing; until then questions to them fail at once."""
        self._servers.down.clear()

    def ask(self, questions: Sequence[Question], seconds: float) -> list[Answer]:
        """Ask all questions and return their answers in the same order, after `seconds` at the latest.

        An answer is a frame with whatever code, or the reason why there is none.
        """
        return _Asking(self._servers, questions, seconds).run()


class _Asking:
    """One call of `ask`."""

    def __init__(self, servers: _Servers, questions: Sequence[Question], seconds: float) -> None:
        self._servers = servers
        self._questions = questions
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._answers: list[Answer | None] = [None] * len(questions)
        self._left = len(questions)
        self._waiting: dict[str, deque[int]] = {}
        for index, question in enumerate(questions):
            self._waiting.setdefault(question.address, deque()).append(index)
        self._asked: dict[str, dict[int, _Asked]] = {address: {} for address in self._waiting}
        # Connections of an earlier call, until they answer in this one.
        self._old = {address for address in self._waiting if address in servers.connections}
        self._heard: set[str] = set()
        self._silent: set[str] = set()
        self._opening: dict[str, float] = {}
        self._bytes = 0

    def run(self) -> list[Answer]:
        for address in self._waiting:
            self._open(address)
            self._send(address)
        while self._left and (now := time.monotonic()) < self._end:
            for key, _ in self._servers.selector.select(max(0.0, self._next_due() - now)):
                self._go_on(key.data)
            self._expire()
        reason = f"no answer within {self._seconds:.1f} s"
        for address, asked in self._asked.items():
            self._silent |= {address} if any(one.question.seconds is None for one in asked.values()) else set()
        # A server that says nothing at all is not asked again before `forgive`. Its connection may be dead without a
        # word, so it is not kept.
        for address in self._silent - self._heard:
            self._servers.drop(address)
            self._servers.down[address] = reason
        late = Unanswered(reason, late=True)
        return [late if answer is None else answer for answer in self._answers]

    def _open(self, address: str) -> None:
        servers = self._servers
        if address in servers.connections:
            return
        if (reason := servers.down.get(address)) is not None:
            self._fail(address, reason)
            return
        try:
            servers.open(address)
        except ConnectionLost as error:
            self._unreachable(address, str(error))
            return
        self._opening[address] = time.monotonic() + _CONNECT_S

    def _send(self, address: str) -> None:
        waiting, asked = self._waiting[address], self._asked[address]
        if address not in self._servers.connections:
            return
        while waiting and len(asked) < _IN_FLIGHT:
            index = waiting.popleft()
            question = self._questions[index]
            opaque = self._servers.send(question)
            limit = self._seconds if question.seconds is None else question.seconds
            asked[opaque] = _Asked(index, question, time.monotonic() + limit)

    def _go_on(self, connection: Connection) -> None:
        address = connection.address
        try:
            frames = connection.ready()
        except ConnectionLost as error:
            self._lost(address, str(error))
            return
        if address not in self._asked:
            return  # what arrives answers an earlier call, which has given up
        if connection.is_open:
            self._opening.pop(address, None)
        for frame in frames:
            # What is no answer is a request of the server to its clients. Answers that were given up have no entry.
            asked = self._asked[address].pop(frame.opaque, None) if frame.is_answer else None
            if asked is None:
                continue
            self._old.discard(address)
            self._heard.add(address)
            self._bytes += len(frame.body or b"")
            too_much = Unanswered(f"the answers have more than {_MOST_BYTES:,} bytes")
            self._set(asked.index, frame if self._bytes <= _MOST_BYTES else too_much)
        self._send(address)

    def _lost(self, address: str, reason: str) -> None:
        self._servers.drop(address)
        if address not in self._asked:
            return
        if address in self._opening:
            self._unreachable(address, reason)
        elif address in self._old:
            self._old.discard(address)
            again = sorted(one.index for one in self._asked[address].values())
            self._asked[address].clear()
            self._waiting[address].extendleft(reversed(again))
            self._open(address)
            self._send(address)
        else:
            self._fail(address, reason)

    def _unreachable(self, address: str, reason: str) -> None:
        self._servers.down[address] = reason
        self._fail(address, reason)

    def _fail(self, address: str, reason: str) -> None:
        """Give up all questions to a server."""
        self._opening.pop(address, None)
        for index in (*self._waiting[address], *(one.index for one in self._asked[address].values())):
            self._set(index, Unanswered(reason))
        self._waiting[address].clear()
        self._asked[address].clear()

    def _expire(self) -> None:
        now = time.monotonic()
        for address in [address for address, due in self._opening.items() if now >= due]:
            self._servers.drop(address)
            self._unreachable(address, f"no connection within {_CONNECT_S:.0f} s")
        for address, asked in self._asked.items():
            expired = [opaque for opaque, one in asked.items() if now >= one.due]
            for opaque in expired:
                one = asked.pop(opaque)
                if one.question.seconds is None:
                    self._silent.add(address)
                seconds = self._seconds if one.question.seconds is None else one.question.seconds
                self._set(one.index, Unanswered(f"no answer within {seconds:.1f} s", late=True))
            if expired:
                self._send(address)

    def _next_due(self) -> float:
        times = [one.due for asked in self._asked.values() for one in asked.values()]
        return min(self._end, *self._opening.values(), *times)

    def _set(self, index: int, answer: Answer) -> None:
        if self._answers[index] is None:
            self._answers[index] = answer
            self._left -= 1

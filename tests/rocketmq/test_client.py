"""The client against servers that answer slowly, wrongly, never, and in no order."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Self

import pytest

from streaming.demo.ports import free_port
from streaming.rocketmq import (
    ROCKETMQ,
    Client,
    Credentials,
    Frame,
    Malformed,
    Question,
    Request,
    Unanswered,
    decode_frame,
    encode_frame,
)
from tests.rocketmq.frames import encoded

Behaviour = Callable[[Frame, int], Iterable[bytes | None]]
"""What is sent for a request of the n-th connection, piece by piece; None closes the connection."""


class FakeServer:
    """Listens on 127.0.0.1; a context manager.

    Attributes:
        address: "127.0.0.1:PORT".
        asked: Requests that came, in order.
        accepted: Connections that were made.
    """

    def __init__(self, behave: Behaviour, port: int = 0) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", port))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked: list[Frame] = []
        self.accepted = 0
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Close all connections."""
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._listener.accept()
                self.accepted += 1
                self._open.append(one)
                threading.Thread(target=self._serve, args=(one, self.accepted), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        stream = connection.makefile("rb")
        with contextlib.suppress(OSError, ValueError):
            while head := stream.read(4):
                frame = decode_frame(head + stream.read(int.from_bytes(head, "big")))
                assert not isinstance(frame, Malformed)
                self.asked.append(frame)
                for piece in self._behave(frame, number):
                    if piece is None:
                        connection.shutdown(socket.SHUT_RDWR)
                        return
                    connection.sendall(piece)


def answer_of(request: Frame, body: bytes = b"{}", code: int = 0, remark: str | None = None, header: int = 0) -> Frame:
    """An answer to a request."""
    return Frame(code, request.opaque, 1, "JAVA", 513, remark, None, body or None, header)


_CODE = Request.GET_TOPIC_STATS_INFO
_SOON = 0.3
"""Seconds that a test waits for an answer that never comes."""


def _asked(server: FakeServer, *topics: str, seconds: float | None = None) -> list[Question]:
    return [Question(server.address, _CODE, {"topic": topic}, seconds) for topic in topics]


def _echo(request: Frame, _number: int) -> Iterator[bytes]:
    yield encode_frame(answer_of(request, (request.fields or {})["topic"].encode()))


def _bodies(answers: list[Frame | Unanswered]) -> list[object]:
    return [answer.body if isinstance(answer, Frame) else answer.reason for answer in answers]


def test_answers_come_in_the_order_of_the_questions_over_one_connection() -> None:
    topics = [str(number) for number in range(200)]
    with FakeServer(_echo) as server, Client() as client:
        assert _bodies(client.ask(_asked(server, *topics), 10)) == [topic.encode() for topic in topics]
        assert _bodies(client.ask(_asked(server, "again"), 10)) == [b"again"]
        assert server.accepted == 1


def test_answers_in_another_order_find_their_questions() -> None:
    waiting: list[Frame] = []

    def backwards(request: Frame, _number: int) -> Iterator[bytes]:
        waiting.append(request)
        if len(waiting) == 3:
            for one in reversed(waiting):
                yield from _echo(one, 1)

    with FakeServer(backwards) as server, Client() as client:
        assert _bodies(client.ask(_asked(server, "a", "b", "c"), 10)) == [b"a", b"b", b"c"]


def test_an_answer_in_pieces_and_in_the_binary_header_is_read() -> None:
    def in_pieces(request: Frame, _number: int) -> Iterator[bytes]:
        data = encoded(answer_of(request, b"x" * 1000, header=ROCKETMQ))
        for at in range(0, len(data), 333):
            yield data[at : at + 333]

    with FakeServer(in_pieces) as server, Client() as client:
        assert _bodies(client.ask(_asked(server, "a"), 10)) == [b"x" * 1000]


def test_requests_of_the_server_and_answers_to_nobody_are_passed_over() -> None:
    def chatty(request: Frame, _number: int) -> Iterator[bytes]:
        yield encode_frame(Frame(40, request.opaque, 2, "JAVA", fields={"consumerGroup": "g"}))
        yield encode_frame(Frame(0, request.opaque + 1000, 1, "JAVA", body=b"not yours"))
        yield from _echo(request, 1)

    with FakeServer(chatty) as server, Client() as client:
        assert _bodies(client.ask(_asked(server, "a"), 10)) == [b"a"]


def test_a_server_that_never_answers_costs_the_time_given_once() -> None:
    with FakeServer(lambda *_: ()) as server, FakeServer(_echo) as other, Client() as client:
        began = time.monotonic()
        answers = client.ask([*_asked(server, "a", "b"), *_asked(other, "c")], _SOON)
        assert _bodies(answers) == ["no answer within 0.3 s", "no answer within 0.3 s", b"c"]
        assert all(isinstance(answer, Unanswered) and answer.late for answer in answers[:2])
        # Until it is forgiven nothing waits for it again.
        assert _bodies(client.ask(_asked(server, "a"), 30)) == ["no answer within 0.3 s"]
        assert time.monotonic() - began < 25
        assert len(server.asked) == 2
        client.forgive()
        client.ask(_asked(server, "a"), _SOON)
        # Its connection may have been dead without a word, so there is a new one.
        assert server.accepted == 2


def test_a_late_answer_is_nobodys_and_the_connection_stays() -> None:
    go_on = threading.Event()

    def slow(request: Frame, number: int) -> Iterator[bytes]:
        if (request.fields or {})["topic"] == "slow":
            go_on.wait(20)
        yield from _echo(request, number)

    with FakeServer(slow) as server, Client() as client:
        # Its own limit: the server passes such a question on, and its silence says nothing about the server.
        assert _bodies(client.ask(_asked(server, "slow", seconds=_SOON), 10)) == ["no answer within 0.3 s"]
        go_on.set()
        assert _bodies(client.ask(_asked(server, "b"), 10)) == [b"b"]
        assert server.accepted == 1


@pytest.mark.parametrize("sent", [b"\x7f\xff\xff\xff", b"HTTP/1.1 400 Bad Request", b"\0\0\0\5\0\0\0\1x"])
def test_a_server_that_speaks_something_else_is_given_up(sent: bytes) -> None:
    with FakeServer(lambda *_: [sent]) as server, Client() as client:
        for answer in client.ask(_asked(server, "a", "b"), 10):
            assert answer.reason.startswith("it sends what is no frame (")


def test_a_server_that_hangs_up_is_not_asked_again_in_the_same_call() -> None:
    with FakeServer(lambda *_: [None]) as server, Client() as client:
        assert _bodies(client.ask(_asked(server, "a"), 10)) == ["the server closed the connection"]
        assert server.accepted == 1


def test_a_connection_that_was_lost_between_two_calls_is_opened_again() -> None:
    with FakeServer(_echo) as server, Client() as client:
        client.ask(_asked(server, "a"), 10)
        server.hang_up()
        assert _bodies(client.ask(_asked(server, "b", "c"), 10)) == [b"b", b"c"]
        assert server.accepted == 2


def test_nobody_there_is_told_at_once_and_for_every_question() -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with Client() as client:
        answers = client.ask([Question(nobody, _CODE), Question(nobody, _CODE), Question("no address", _CODE)], 30)
        assert _bodies(answers)[:2] == ["connection refused"] * 2
        assert isinstance(answers[2], Unanswered)


def test_a_request_is_signed_over_the_values_in_the_order_of_their_names() -> None:
    """OpenSSL computed it as `AclSigner.calSignature` of 5.5.0 does: over "idorders", with the key "secret"."""
    with FakeServer(_echo) as server, Client(credentials=Credentials("id", "secret")) as client:
        client.ask(_asked(server, "orders"), 10)
        assert server.asked[0].fields == {
            "AccessKey": "id",
            "topic": "orders",
            "Signature": "WJEPKEjIuIDZU8Q2UUGgRAwFVY8=",
        }

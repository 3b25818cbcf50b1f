"""Clients that are silent or slow, over real connections."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from streaming.serve.access import SharedBody, TimedConnection

BODY = b"0123456789abcdef" * 2_000_000  # 32 MB: far more than the sockets' buffers hold


class Impatient(TimedConnection):
    head_s = 0.2
    read_s = 0.2
    lost = threading.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """A server whose every answer is the large body."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await SharedBody(BODY)(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=Impatient, ws="none", lifespan="off", log_config=None, timeout_keep_alive=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join(30)
    listener.close()


def ended(client: socket.socket) -> bool:
    """Reads to the end; whether there is one within the timeout."""
    try:
        while client.recv(1 << 20):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: "], ids=["nothing", "half a head"])
def test_a_connection_without_a_whole_head_is_ended(address: tuple[str, int], said: bytes) -> None:
    with socket.create_connection(address, timeout=30) as client:
        client.sendall(said)
        assert ended(client)


def test_a_head_that_comes_after_an_answer_must_come_soon_too(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        read = 0
        while read < len(BODY):
            read += len(client.recv(1 << 20))
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert ended(client)


def test_a_reader_that_does_not_read_is_ended(address: tuple[str, int]) -> None:
    Impatient.lost.clear()
    with socket.create_connection(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert Impatient.lost.wait(30)


def test_a_reader_that_reads_gets_all(address: tuple[str, int]) -> None:
    host, port = address
    with urllib.request.urlopen(f"http://{host}:{port}/", timeout=60) as answer:
        assert answer.read() == BODY

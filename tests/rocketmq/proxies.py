"""TCP proxies before the servers of a real cluster: they pass answers on to clients that ask them, or spoil them.

A proxied name server names the proxies in place of the brokers' own addresses, so a probe that is given its address
meets no server itself, while the members of groups live undisturbed on the cluster.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from streaming.rocketmq import Malformed, decode_frame, encode_frame
from tests.rocketmq.servers import EmbeddedRocketMQ

__all__ = [
    "Fault",
    "Proxies",
    "Proxy",
    "answering",
    "garbled",
    "only",
    "passed",
    "reset",
    "slow",
    "swallowed",
    "truncated",
]

Fault = Callable[[bytes, int], Iterator[bytes | None]]
"""What becomes of an answer's bytes, by the code of its request: pieces to pass on; None resets the connection."""

_RESET: Final = struct.pack("ii", 1, 0)
"""`SO_LINGER` with no time left: closing sends RST."""


def passed(answer: bytes, code: int) -> Iterator[bytes | None]:
    """No fault."""
    del code
    yield answer


def swallowed(answer: bytes, code: int) -> Iterator[bytes | None]:
    """No answer ever comes."""
    del answer, code
    yield from ()


def reset(answer: bytes, code: int) -> Iterator[bytes | None]:
    """The connection is reset in place of an answer."""
    del answer, code
    yield None


def truncated(answer: bytes, code: int) -> Iterator[bytes | None]:
    """Half an answer, and a reset."""
    del code
    yield answer[: len(answer) // 2]
    yield None


def slow(seconds: float) -> Fault:
    """Each answer comes late, one after the other."""

    def late(answer: bytes, code: int) -> Iterator[bytes | None]:
        del code
        time.sleep(seconds)
        yield answer

    return late


def garbled(seed: int) -> Fault:
    """One byte in eight of each answer is another one; the lengths are right."""
    chance = random.Random(seed)

    def noisy(answer: bytes, code: int) -> Iterator[bytes | None]:
        del code
        found = bytearray(answer)
        for _ in range(len(found) // 8):
            found[chance.randrange(8, len(found))] ^= chance.randrange(1, 256)
        yield bytes(found)

    return noisy


def answering(code: int, body: bytes | None = None) -> Fault:
    """Each answer has another code and another body."""

    def other(answer: bytes, of: int) -> Iterator[bytes | None]:
        del of
        frame = decode_frame(answer)
        assert not isinstance(frame, Malformed)
        yield encode_frame(replace(frame, code=code, body=body))

    return other


def only(codes: Collection[int], fault: Fault) -> Fault:
    """A fault of some requests' answers alone."""

    def some(answer: bytes, code: int) -> Iterator[bytes | None]:
        yield from (fault if code in codes else passed)(answer, code)

    return some


class Proxy:
    """One proxy; a context manager.

    Attributes:
        address: Where it listens.
        fault: What it does to answers; may be set at any time.
    """

    def __init__(self, server: str, rename: Callable[[bytes], bytes] = lambda body: body) -> None:
        """Listen before a server.

        Args:
            server: Its address.
            rename: What becomes of each answer's body, whatever the fault.
        """
        self._server, self._rename = server, rename
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.fault: Fault = passed
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in (self._listener, *self._open):
            # (A close alone does not wake the thread that waits for it.)
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                host, _, port = self._server.rpartition(":")
                try:
                    server = socket.create_connection((host, int(port)))
                except OSError:
                    client.close()
                    continue
                self._open += [client, server]
                codes: dict[int, int] = {}
                threading.Thread(target=self._requests, args=(client, server, codes), daemon=True).start()
                threading.Thread(target=self._answers, args=(server, client, codes), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, codes: dict[int, int]) -> None:
        for data in _frames(client):
            frame = decode_frame(data)
            assert not isinstance(frame, Malformed)
            codes[frame.opaque] = frame.code
            with contextlib.suppress(OSError):
                server.sendall(data)
        _hang_up(server)

    def _answers(self, server: socket.socket, client: socket.socket, codes: dict[int, int]) -> None:
        for data in _frames(server):
            frame = decode_frame(data)
            assert not isinstance(frame, Malformed)
            if frame.body is not None:
                frame = replace(frame, body=self._rename(frame.body))
            with contextlib.suppress(OSError):
                for piece in self.fault(encode_frame(frame), codes.pop(frame.opaque, -1)):
                    if piece is None:
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                        # (It ends when nobody reads from it any more.)
                        client.shutdown(socket.SHUT_RD)
                        client.close()
                        _hang_up(server)
                        return
                    client.sendall(piece)
        _hang_up(client)


def _frames(connection: socket.socket) -> Iterator[bytes]:
    came = bytearray()
    with contextlib.suppress(OSError):
        while data := connection.recv(1 << 16):
            came += data
            while len(came) >= 4 and len(came) >= (end := 4 + int.from_bytes(came[:4], "big")):
                yield bytes(came[:end])
                del came[:end]


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Proxies:
    """A proxy before each broker of a cluster, and two before its first name server, like two that agree.

    Attributes:
        cluster: The cluster.
        name_servers: Both.
        brokers: By name.
    """

    def __init__(self, cluster: EmbeddedRocketMQ) -> None:
        self.cluster = cluster
        self.brokers = {name: Proxy(broker.address) for name, broker in cluster.brokers.items()}
        self.name_servers = [Proxy(cluster.addresses[0], self._named) for _ in range(2)]
        self._names = [
            (cluster.brokers[name].address.encode(), proxy.address.encode()) for name, proxy in self.brokers.items()
        ]

    @classmethod
    @contextmanager
    def before(cls, cluster: EmbeddedRocketMQ) -> Iterator[Self]:
        """Proxies that run for as long as the context."""
        made = cls(cluster)
        with contextlib.ExitStack() as stack:
            for proxy in (*made.brokers.values(), *made.name_servers):
                stack.enter_context(proxy)
            yield made

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of the name servers' proxies."""
        return tuple(proxy.address for proxy in self.name_servers)

    def _named(self, body: bytes) -> bytes:
        for server, proxy in self._names:
            body = body.replace(b'"' + server + b'"', b'"' + proxy + b'"')
        return body

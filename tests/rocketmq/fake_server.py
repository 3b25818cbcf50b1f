"""A server that answers as a test says: slowly, wrongly, never."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from streaming.rocketmq import Frame, Malformed, decode_frame

__all__ = ["FakeServer", "answer_of"]

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

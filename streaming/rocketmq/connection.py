"""One connection to a server, never waiting: called when its socket is ready, it gives the frames that came."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
from typing import Final

from streaming.rocketmq.frames import LARGEST_FRAME, Frame, Malformed, decode_frame

DEFAULT_PORT: Final = 9876

_CHUNK = 256 * 1024
_MOST_READS = 16
"""Chunks that one server may send before the others have their turn."""


class ConnectionLost(Exception):
    """The connection is no more; the text says why."""


def host_and_port(address: str) -> tuple[str, int]:
    """Parts of "host:port", "[address]:port" or "host".

    Raises:
        ValueError: The port is no number up to 65,535, or there is no host.
    """
    host, colon, port = address.strip().rpartition(":")
    if not colon or "]" in port:
        host, port = address.strip(), str(DEFAULT_PORT)
    host = host.strip("[]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        message = f"{address!r} is not HOST:PORT"
        raise ValueError(message)
    return host, int(port)


class Connection:
    """A connection that opens by itself. Call `ready` when the selector says so, until it raises `ConnectionLost`."""

    def __init__(self, address: str, tls: ssl.SSLContext | None, selector: selectors.BaseSelector) -> None:
        """Begin to connect.

        Raises:
            ConnectionLost: The address is none, or nobody listens there.
        """
        self.address = address
        self._tls = tls
        self._selector = selector
        self._socket: socket.socket | None = None
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._handshaking = False
        self.is_open = False
        try:
            self._host, port = host_and_port(address)
            # Answered by the system's resolver, which has timeouts of its own; addresses of brokers are numbers.
            found = socket.getaddrinfo(self._host, port, type=socket.SOCK_STREAM)
        except (OSError, ValueError, UnicodeError) as error:
            raise ConnectionLost(_why(error)) from error
        self._candidates = [(family, where) for family, _, _, _, where in found]
        self._connect()

    @property
    def unsent(self) -> int:
        """Bytes that wait for the socket."""
        return len(self._outgoing)

    def send(self, data: bytes) -> None:
        """Send it as soon as the socket takes it."""
        self._outgoing += data
        if self.is_open:
            self._watch(selectors.EVENT_READ | selectors.EVENT_WRITE)

    def ready(self) -> list[Frame]:
        """Go on, and return the frames that have come.

        Raises:
            ConnectionLost: It failed, was closed, or sent what is no frame.
        """
        try:
            if not self.is_open and not self._has_opened():
                return []
            self._write()
            return self._read()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            return []
        except OSError as error:
            self.close()
            raise ConnectionLost(_why(error)) from error
        except ConnectionLost:
            self.close()
            raise

    def close(self) -> None:
        """Close it; does nothing if it is closed."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None
        self.is_open = False

    def _connect(self) -> None:
        """Begin with the next address of the host."""
        last: OSError | None = None
        while self._candidates:
            family, where = self._candidates.pop(0)
            made = socket.socket(family, socket.SOCK_STREAM)
            try:
                made.setblocking(False)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                made.connect_ex(where)
            except (OSError, OverflowError) as error:
                made.close()
                last = error if isinstance(error, OSError) else OSError(str(error))
                continue
            self._socket = made
            self._selector.register(made, selectors.EVENT_WRITE, self)
            return
        raise ConnectionLost(_why(last or OSError("no address")))

    def _has_opened(self) -> bool:
        made = self._socket
        if made is None:
            message = "closed"
            raise ConnectionLost(message)
        if not self._handshaking:
            if number := made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                if not self._candidates:
                    raise OSError(number, os.strerror(number))
                self._selector.unregister(made)
                made.close()
                self._socket = None
                self._connect()
                return False
            if self._tls is not None:
                self._selector.unregister(made)
                # `wrap_socket` takes over the descriptor, and then fails if the peer has gone meanwhile.
                self._socket = None
                self._socket = made = self._tls.wrap_socket(
                    made, server_hostname=self._host, do_handshake_on_connect=False
                )
                self._selector.register(made, selectors.EVENT_WRITE, self)
                self._handshaking = True
        if isinstance(made, ssl.SSLSocket):
            try:
                made.do_handshake()
            except ssl.SSLWantReadError:
                self._watch(selectors.EVENT_READ)
                return False
            except ssl.SSLWantWriteError:
                self._watch(selectors.EVENT_WRITE)
                return False
        self._handshaking = False
        self.is_open = True
        return True

    def _write(self) -> None:
        assert self._socket is not None  # noqa: S101  (it has opened)
        try:
            while self._outgoing:
                sent = self._socket.send(self._outgoing[:_CHUNK])
                del self._outgoing[:sent]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            self._watch(selectors.EVENT_READ | selectors.EVENT_WRITE)
            return
        self._watch(selectors.EVENT_READ)

    def _read(self) -> list[Frame]:
        assert self._socket is not None  # noqa: S101  (it has opened)
        frames: list[Frame] = []
        for _ in range(_MOST_READS):
            try:
                data = self._socket.recv(_CHUNK)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                break
            if not data:
                if frames:
                    break  # (the next read says it again)
                message = "the server closed the connection"
                raise ConnectionLost(message)
            self._incoming += data
            self._cut(frames)
            pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()
            if len(data) < _CHUNK and not pending:
                break
        return frames

    def _cut(self, frames: list[Frame]) -> None:
        """Take whole frames from what has come."""
        at = 0
        while len(self._incoming) - at >= 4:
            total = int.from_bytes(self._incoming[at : at + 4], "big", signed=True)
            if not 4 <= total <= LARGEST_FRAME:
                message = f"it announces a frame of {total:,} bytes, and {LARGEST_FRAME:,} are the most"
                raise ConnectionLost(message)
            if len(self._incoming) - at < 4 + total:
                break
            frame = decode_frame(bytes(self._incoming[at : at + 4 + total]))
            if isinstance(frame, Malformed):
                message = f"it sends what is no frame ({frame.reason})"
                raise ConnectionLost(message)
            frames.append(frame)
            at += 4 + total
        del self._incoming[:at]

    def _watch(self, events: int) -> None:
        if self._socket is not None:
            self._selector.modify(self._socket, events, self)


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'no answer in TLS'}"
    if isinstance(error, OSError):
        return (error.strerror or str(error) or type(error).__name__).lower()
    return str(error)

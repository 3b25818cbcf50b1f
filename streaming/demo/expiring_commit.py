"""Commit offsets that expire at a time of their own: a hand-written OffsetCommit request of version 2.

Since Kafka 2.1 (KIP-211, request version 5) retention is the broker's setting, and no current client can request
another. Brokers still accept versions 2 to 4 (seen with 4.3.1), and then write an OffsetCommit value of version 1 with
`expireTimestamp`: the only way to let one offset expire and keep the others.

Request, big-endian, string = int16 length + UTF-8, array = int32 count:
    size int32 | api key int16 = 8, version int16 = 2, correlation int32, client id string |
    group string, generation int32 = -1, member string = "", retention in ms int64,
    topics [name string, partitions [index int32, offset int64, metadata string]]
Response: size int32 | correlation int32 | topics [name string, partitions [index int32, error int16]].
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping

from streaming.demo.journal import PartitionId, by_topic
from streaming.exceptions import EvenkeelError

_OFFSET_COMMIT, _VERSION, _CORRELATION = 8, 2, 1
_TIMEOUT_S = 10.0

_NOT_YET = {14, 15, 16}
"""Coordinator loading, not available, not coordinator: a broker's answers until its offsets log is loaded."""

_PATIENCE_S, _RETRY_S = 30.0, 0.3


class CommitRefusedError(EvenkeelError):
    """The broker answered a commit with an error."""


def commit_with_retention(bootstrap: str, group: str, offsets: Mapping[PartitionId, int], *, retention_ms: int) -> None:
    """Commit for a group without members; the offsets expire `retention_ms` after the broker received them.

    The request goes to the bootstrap broker, which must be the group's coordinator, as a lone broker always is.

    Raises:
        CommitRefusedError: The answer has an error code for a partition.
        OSError: The broker cannot be reached, or closed the connection.
    """
    request = _request(group, offsets, retention_ms)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        errors = _ask(bootstrap, request)
        if not any(errors.values()) and set(errors) == set(offsets):
            return
        if not set(errors.values()) <= _NOT_YET or time.monotonic() > deadline:
            message = f"The commit of group {group!r} was refused, by topic and partition: {errors}."
            raise CommitRefusedError(message)
        time.sleep(_RETRY_S)


def _request(group: str, offsets: Mapping[PartitionId, int], retention_ms: int) -> bytes:
    body = _string(group) + struct.pack(">i", -1) + _string("") + struct.pack(">q", retention_ms)
    topics = by_topic(offsets)
    body += struct.pack(">i", len(topics))
    for topic, partitions in topics.items():
        body += _string(topic) + struct.pack(">i", len(partitions))
        for partition, offset in partitions.items():
            body += struct.pack(">iq", partition, offset) + _string("")
    header = struct.pack(">hhi", _OFFSET_COMMIT, _VERSION, _CORRELATION) + _string("one-off-report")
    return struct.pack(">i", len(header + body)) + header + body


def _ask(bootstrap: str, request: bytes) -> dict[PartitionId, int]:
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection:
        connection.sendall(request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        return _errors(_receive(connection, size))


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            message = f"The broker hung up after {len(received)} of {size} bytes."
            raise ConnectionError(message)
        received += piece
    return received


def _errors(answer: bytes) -> dict[PartitionId, int]:
    errors: dict[PartitionId, int] = {}
    (topics,) = struct.unpack_from(">i", answer, 4)
    at = 8
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", answer, at)
        topic = answer[at + 2 : at + 2 + length].decode()
        at += 2 + length
        (partitions,) = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(partitions):
            partition, error = struct.unpack_from(">ih", answer, at)
            errors[topic, partition] = error
            at += 6
    return errors

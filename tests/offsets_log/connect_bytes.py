"""Bytes of Connect's protocol, written by hand: worker states and assignments."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.offsets_log.written import sized, string, topic_partitions

Units = Sequence[tuple[str, list[int]]]


def worker_state(version: int, url: str, config_offset: int, allocation: bytes | None = None) -> bytes:
    """The subscription of a worker."""
    data = struct.pack(">h", version) + string(url) + struct.pack(">q", config_offset)
    if version == 0:
        return data
    return data + sized(allocation)


def worker_assignment(
    version: int,
    leader: str,
    leader_url: str,
    config_offset: int,
    units: Units,
    *,
    revoked: Units = (),
    delay: int = 0,
    error: int = 0,
) -> bytes:
    """The assignment of a worker."""
    data = struct.pack(">hh", version, error) + string(leader) + string(leader_url) + struct.pack(">q", config_offset)
    data += topic_partitions(list(units))
    if version == 0:
        return data
    return data + topic_partitions(list(revoked)) + struct.pack(">i", delay)

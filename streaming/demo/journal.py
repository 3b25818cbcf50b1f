"""The journal: what the demo's clients did, as JSON lines that a check can compare with the tables.

One object a line, in the order of events; every line has `at_ms` (ms since the epoch by this machine's clock, for
reading only, never for comparing) and `what`:

`generation`: what a rebalance listener saw: `group`, `member` (member id), `client` (client id), `generation`,
    `assigned` ({topic: [partition]}; with a cooperative strategy only the partitions that were added).
`commits`: `group`; `counts` ({topic: {partition: number}}), the commits acknowledged since the last such line,
    one per partition of each request; `offsets` ({topic: {partition: offset}}), the last of each.
`uncertain`: a commit with unknown outcome: `group`, `partitions` ({topic: {partition: offset}}).
`aborted`: offsets of an aborted transaction, which must not appear in any table: `group`, `offsets`.
`step`: a step of a story in words: `story` (its number), `did`, `second` (of the demo's clock), `group` or `topic`.
`junk`: a record written into the offsets log: `kind`, `expected` (`undecodable`, `unknown_type`, `newer_version`),
    `partition`, `offset`, `key`, `value` (hex).
`failed`: a story ended with an error: `story` (0 for the stage), `error`.
`quiet`, `end`: nothing is produced or committed from here on; all members have left.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PartitionId = tuple[str, int]
"""Topic and partition."""


class Journal:
    """Appends lines to one file; several processes may hold the same file, each line is one write."""

    def __init__(self, path: Path) -> None:
        """Open the file for appending, creating it."""
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, what: str, **fields: object) -> None:
        """Append one line."""
        line = {"at_ms": time.time_ns() // 1_000_000, "what": what, **fields}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class CommitLedger:
    """Counts acknowledged commits per group and partition, and writes them to the journal now and then.

    Thread-safe. Call `flush` every few seconds and before the end.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._counts: dict[str, dict[PartitionId, int]] = {}
        self._offsets: dict[str, dict[PartitionId, int]] = {}

    def committed(self, group: str, offsets: Mapping[PartitionId, int]) -> None:
        """Record one acknowledged commit request."""
        with self._lock:
            counts = self._counts.setdefault(group, defaultdict(int))
            last = self._offsets.setdefault(group, {})
            for partition, offset in offsets.items():
                counts[partition] += 1
                last[partition] = offset

    def uncertain(self, group: str, offsets: Mapping[PartitionId, int]) -> None:
        """Record a commit request that was never answered."""
        self._journal.write("uncertain", group=group, partitions=by_topic(offsets))

    def flush(self) -> None:
        """Write the counts since the last flush, a line per group."""
        with self._lock:
            counted, self._counts = self._counts, {}
            offsets, self._offsets = self._offsets, {}
        for group, counts in counted.items():
            self._journal.write("commits", group=group, counts=by_topic(counts), offsets=by_topic(offsets[group]))


def generation_line(
    group: str, member: str, client: str, generation: int, owned: Iterable[PartitionId]
) -> dict[str, Any]:
    """The fields of a line `generation`."""
    assigned: dict[str, list[int]] = {}
    for topic, partition in sorted(owned):
        assigned.setdefault(topic, []).append(partition)
    return {"group": group, "member": member, "client": client, "generation": generation, "assigned": assigned}


def by_topic(values: Mapping[PartitionId, Any]) -> dict[str, dict[int, Any]]:
    """Nest values by topic and partition, as JSON needs it."""
    nested: dict[str, dict[int, Any]] = {}
    for (topic, partition), value in sorted(values.items()):
        nested.setdefault(topic, {})[partition] = value
    return nested

"""Recorded records of a group, in the form of `evenkeel judge`: one JSON line for each round.

    {"topics": {name: partitions}, "records": [{"key": hex, "value": hex | null, "time": ms}], "round_time": ms}

A line has the group's records since the line before, and the partition counts of its topics at the round behind them.
For Kafka Streams it also has "tasks": by client id the active and the standby tasks that each thread said it had.

    python -m tests.real_groups.recorded FILE...    prints the verdicts
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streaming.groups import GroupConfig, Rows
from streaming.offsets_log import Compactor
from streaming.records import MembershipRecord
from tests.groups.build import CONFIG, Life, make_observation, make_topic


@dataclass
class Recording:
    """Writes what the log says of one group, round by round.

    Attributes:
        path: Its file.
    """

    path: Path
    _records: list[dict[str, Any]] = field(default_factory=list)

    def saw(self, key: bytes, value: bytes | None, record_time: int) -> None:
        """Keep a record of the group, of any type."""
        self._records.append({"key": key.hex(), "value": None if value is None else value.hex(), "time": record_time})

    def round(self, counts: Mapping[str, int], tasks: Mapping[str, object] | None = None) -> None:
        """Write the records since the last round."""
        if self._records:
            line = {"topics": dict(counts), "records": self._records, "round_time": int(time.time() * 1_000)}
            if tasks is not None:
                line["tasks"] = tasks
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
            self._records = []


def judged_lines(lines: Iterable[Mapping[str, Any]], config: GroupConfig = CONFIG) -> Rows:
    """The core's rows for a recorded group, with a round behind each line."""
    life = Life(config)
    for position, inputs, line in _inputs(lines):
        topics = (make_topic(topic, count, end=10**9) for topic, count in line["topics"].items())
        last = max(record["time"] for record in line["records"])
        life.take(*inputs, make_observation(position, *topics, time=max(line["round_time"], last + 1)))
    return life.rows


def records_of(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[MembershipRecord, Mapping[str, int]]]:
    """The group's membership records, each with the partition counts of its round."""
    for _, inputs, line in _inputs(lines):
        for record in inputs:
            if isinstance(record, MembershipRecord):
                yield record, line["topics"]


def _inputs(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, list[Any], Mapping[str, Any]]]:
    """The position behind each line, its inputs and the line."""
    position = 0
    for line in lines:
        compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
        for record in line["records"]:
            value = None if record["value"] is None else bytes.fromhex(record["value"])
            compactor.add(position, record["time"], bytes.fromhex(record["key"]), value)
            position += 1
        assert not compactor.unreadable()
        yield position, [item for _, inputs in compactor.groups() for item in inputs], line


def _main() -> None:
    for name in sys.argv[1:]:
        with Path(name).open(encoding="utf-8") as file:
            rows = judged_lines(map(json.loads, file))
        said = Counter((row.strategy, row.verdict, row.matching_library or row.reason) for row in rows.drift)
        print(f"{name}: {len(rows.drift)} decisions, {len(rows.quarantine)} quarantined")
        for (strategy, verdict, why), count in said.most_common():
            print(f"  {count} {strategy} {verdict}: {why}")


if __name__ == "__main__":
    _main()

"""What the source returned in a run, and a run of the source without Spark."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from streaming.job.data_source import EvenkeelSource
from streaming.job.source.settings import SourceSettings
from streaming.records import (
    ROUNDS_KEY,
    CommitWindow,
    GroupInput,
    GroupObservation,
    PartitionInput,
    decode_closed_rounds,
    decode_inputs,
    decode_partition_inputs,
    group_of,
    partition_key,
)
from tests.job.source.fake_probe import FakeProbe
from tests.patience import until

Row = tuple[str, bytes]


class Run:
    """A run's rows by batch number; a repeated batch replaces the first one."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Row]] = {}

    def rows(self) -> list[Row]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    def inputs(self) -> Iterator[tuple[str, GroupInput]]:
        for key, payload in self.rows():
            group = group_of(key)
            if group is not None:
                for item in decode_inputs(payload):
                    yield group, item

    def commits(self) -> Counter[tuple[str, str, int]]:
        found: Counter[tuple[str, str, int]] = Counter()
        for group, item in self.inputs():
            if isinstance(item, CommitWindow):
                found[group, item.topic, item.partition] += item.commits
        return found

    def observations(self) -> Counter[tuple[str, int]]:
        return Counter((group, item.round) for group, item in self.inputs() if isinstance(item, GroupObservation))

    def rounds(self) -> list[int]:
        return [r.round for key, payload in self.rows() if key == ROUNDS_KEY for r in decode_closed_rounds(payload)]

    def told(self, topic: str, partition: int) -> list[PartitionInput]:
        key = partition_key(topic, partition)
        return [item for found, payload in self.rows() if found == key for item in decode_partition_inputs(payload)]


class ReaderRun(Run):
    """A run of the stream reader as Spark drives it: offsets as JSON, a reader of its own for each task.

    Attributes:
        offsets: Where batches ended, as JSON: the checkpoint. Another run may go on from it.
    """

    def __init__(self, settings: SourceSettings, offsets: list[str] | None = None) -> None:
        super().__init__()
        self.offsets = offsets if offsets is not None else []
        self._reader = EvenkeelSource({"settings": settings.option()}).streamReader(None)  # type: ignore[arg-type]
        self._worker = pickle.dumps(self._reader)

    def now(self) -> ReaderRun:
        """Read everything that is available now."""
        self._reader.prepareForTriggerAvailableNow()
        while self._batch():
            pass
        return self

    def until(self, condition: Callable[[], bool]) -> None:
        """Read batch by batch until the condition holds."""
        until(condition, self._batch, told=lambda: f"last batch: {self.offsets[-1:]}")

    def _batch(self) -> bool:
        start: dict[str, Any] = json.loads(self.offsets[-1]) if self.offsets else self._reader.initialOffset()
        end = json.dumps(self._reader.latestOffset(copy.deepcopy(start), self._reader.getDefaultReadLimit()))
        if end == json.dumps(start):
            return False
        self.batches[len(self.offsets)] = [
            (row["key"], row["payload"])
            for task in self._reader.partitions(start, json.loads(end))
            for batch in pickle.loads(self._worker).read(task)
            for row in batch.to_pylist()
        ]
        self.offsets.append(end)
        return True


def write_rounds(probe: FakeProbe, count: int, groups: int = 5) -> Counter[tuple[str, str, int]]:
    """Write rounds with commits between them; returns the commits."""
    made: Counter[tuple[str, str, int]] = Counter()
    for number in range(count):
        for place in range(40):
            group, partition = f"g{place % groups}", place % 3
            probe.commit(group, "t", partition, number * 40 + place)
            made[group, "t", partition] += 1
        probe.round({f"g{group}": {"t": 3, "u": 1} for group in range(groups)})
    return made

"""The log of a streams group as a 4.3.1 broker writes it, record by record: two subtopologies with four tasks each."""

from __future__ import annotations

from typing import Any

from streaming.records import (
    STREAMS,
    CurrentAssignment,
    GroupEpoch,
    GroupInput,
    GroupObservation,
    IdPartitions,
    InternalTopics,
    ModernMember,
    Removed,
    StreamsTopology,
    TargetAssignment,
    TargetEpoch,
)
from tests.groups.build import LOG_PARTITION, MINUTE, SECOND, START, make_observation, make_topic

PARTS = (("0", ("orders",), (), ()), ("1", (), (), ("counted",)))
"""Subtopology 0 reads orders and writes counted, subtopology 1 reads that and counts in a store."""

INTERNAL = (InternalTopics(sinks=("counted",)), InternalTopics((("store", 0),), (0,)))

EVERYTHING: IdPartitions = (("0", (0, 1, 2, 3)), ("1", (0, 1, 2, 3)))
FIRST_HALF: IdPartitions = (("0", (0, 1)), ("1", (0, 1)))
SECOND_HALF: IdPartitions = (("0", (2, 3)), ("1", (2, 3)))
SPARE_OF_FIRST: IdPartitions = (("1", (2, 3)),)
SPARE_OF_SECOND: IdPartitions = (("1", (0, 1)),)

STABLE, UNREVOKED = 1, 2


class StreamsLog:
    """Records of one group in log order; `inputs` are what the core gets."""

    def __init__(self, offset: int = 10) -> None:
        self.inputs: list[GroupInput] = []
        self._offset = offset
        self.settings: dict[str, str] = {"num.standby.replicas": "1"}
        self.parts: Any = PARTS
        self.internal: Any = INTERNAL
        self.time = START

    @classmethod
    def begun(cls) -> StreamsLog:
        """The log of a group that has begun."""
        log = cls()
        log.begins()
        return log

    @classmethod
    def joined(cls, process: str | None = None) -> StreamsLog:
        """The log of a group that a second member has joined."""
        log = cls.begun()
        log.is_joined_by(process=process)
        return log

    @property
    def end(self) -> int:
        """The log's next offset."""
        return self._offset

    def _write(self, kind: Any, *fields: Any, **more: Any) -> None:
        where = self._offset, START + self._offset * SECOND, STREAMS, LOG_PARTITION
        self.inputs.append(kind(*where, *fields, **more))
        self._offset += 1

    def joins(self, name: str, process: str | None = None) -> None:
        about = {"process_id": process or f"process-{name}", "rebalance_timeout": 5 * MINUTE}
        self._write(ModernMember, name, None, None, "client", "/10.0.0.1", (), **about)

    def topology(self) -> None:
        self._write(StreamsTopology, 0, self.parts, self.internal)

    def epoch(self, number: int, validated: int = 0) -> None:
        self._write(GroupEpoch, number, 7, validated_topology=validated, assignment_configs=self.settings)

    def target(self, name: str, active: IdPartitions, standby: IdPartitions = (), warmup: IdPartitions = ()) -> None:
        self._write(TargetAssignment, name, active, standby, warmup)

    def stands(self, number: int) -> None:
        self._write(TargetEpoch, number, self.time)

    def owns(
        self, name: str, number: int, active: IdPartitions, standby: IdPartitions = (), state: int = STABLE, **more: Any
    ) -> None:
        self._write(CurrentAssignment, name, number, number - 1, state, active, standby=standby, **more)

    def leaves(self, name: str) -> None:
        for key_type in (22, 21, 19):
            self._write(Removed, key_type, name)

    def begins(self) -> None:
        """One member joins, the internal topics are created, and it gets everything."""
        self.joins("a")
        self.topology()
        self.epoch(2, validated=-1)
        self.epoch(3)
        self.target("a", EVERYTHING)
        self.stands(3)
        self.owns("a", 3, EVERYTHING)

    def is_joined_by(self, name: str = "b", process: str | None = None) -> None:
        """A second member joins; both targets are those that a real broker gave."""
        self.joins(name, process)
        self.epoch(4)
        self.target("a", FIRST_HALF, SPARE_OF_FIRST)
        self.target(name, SECOND_HALF, SPARE_OF_SECOND)
        self.stands(4)

    def is_handed_over(self) -> None:
        """Both members reach their targets."""
        self.owns("a", 4, FIRST_HALF, SPARE_OF_FIRST)
        self.owns("b", 4, SECOND_HALF, SPARE_OF_SECOND)

    def round(self, after: int = 0, **changes: Any) -> GroupObservation:
        """A round at the end of the log, so many seconds later."""
        topics = [make_topic(name, count) for name, count in self.counts(changes.pop("counts", {})).items()]
        given = {"state": "Stable", "protocol_type": "streams", "group_type": "streams"} | changes
        return make_observation(self.end, *topics, time=START + (self.end + after) * SECOND, **given)

    @staticmethod
    def counts(changes: dict[str, int | None]) -> dict[str, int | None]:
        return {"counted": 4, "orders": 4, "store": 4} | changes

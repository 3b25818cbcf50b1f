"""How far a query has read: the offsets that Spark keeps in the checkpoint.

As JSON: `{"log": {"0": n, ...}, "events": {"0": n, ...}, "rounds": n}`. Each n is an exclusive end: the next offset to
read from that partition. A partition that is missing is read from its beginning; so the constant with which a query
starts (`INITIAL`, which must not depend on the cluster: Spark asks for it again after a crash in the first batch)
covers partitions that appear later, too.

After the first round there are also `round`, the number of the newest round taken, `time`, its time, and `elapsed`, the
time that passed over all rounds. `cluster_id` and `topics` name the cluster and topics of the offsets: offsets of
another cluster are refused, other topics are read from their beginning; `rounds_of` names the cluster that the rounds
are about. `base` is there after the rounds topic was created again: a round's number is its opening record's offset
plus this, so that numbers keep growing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["INITIAL", "Positions"]

INITIAL: dict[str, Any] = {"log": {}, "events": {}, "rounds": 0}
"""Where a new query starts."""


@dataclass(frozen=True, slots=True)
class Positions:
    """The offsets as a value.

    Attributes:
        log: Next offset per partition of the offsets log.
        events: Next offset per partition of the events topic.
        rounds: Next offset of the rounds topic.
        round: Number of the newest round taken; -1 before the first.
        time: Its time, ms; -1 before the first.
        elapsed: Time that passed from the first round taken to the newest one, ms: see `plan.elapsed_after`.
        base: Number of a round minus the offset of its opening record.
        cluster_id: Kafka's own id of the cluster of the offsets; None where it is not known.
        rounds_of: Kafka's own id of the cluster that the rounds are about; None before any round had one. It is a
            different one where topics were copied to a cluster that did not see the rounds.
        topics: Topic ids by the topics' roles (`log`, `events`, `rounds`), as far as they are known.
    """

    log: Mapping[int, int] = field(default_factory=dict)
    events: Mapping[int, int] = field(default_factory=dict)
    rounds: int = 0
    round: int = -1
    time: int = -1
    elapsed: int = 0
    base: int = 0
    cluster_id: str | None = None
    rounds_of: str | None = None
    topics: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, offsets: Mapping[str, Any]) -> Positions:
        """Read what `write` wrote, or `INITIAL`."""
        return cls(
            log={int(partition): int(offset) for partition, offset in offsets["log"].items()},
            events={int(partition): int(offset) for partition, offset in offsets["events"].items()},
            rounds=int(offsets["rounds"]),
            round=int(offsets.get("round", -1)),
            time=int(offsets.get("time", -1)),
            elapsed=int(offsets.get("elapsed", 0)),
            base=int(offsets.get("base", 0)),
            cluster_id=offsets.get("cluster_id"),
            rounds_of=offsets.get("rounds_of"),
            topics=dict(offsets.get("topics", {})),
        )

    def write(self) -> dict[str, Any]:
        """As JSON values. Spark compares offsets as text, so partitions are sorted."""
        offsets: dict[str, Any] = {
            "log": {str(partition): self.log[partition] for partition in sorted(self.log)},
            "events": {str(partition): self.events[partition] for partition in sorted(self.events)},
            "rounds": self.rounds,
        }
        if self.round >= 0:
            offsets |= {"round": self.round, "time": self.time, "elapsed": self.elapsed}
        if self.base:
            offsets["base"] = self.base
        if self.cluster_id is not None:
            offsets["cluster_id"] = self.cluster_id
        if self.rounds_of is not None:
            offsets["rounds_of"] = self.rounds_of
        if self.topics:
            offsets["topics"] = {name: self.topics[name] for name in sorted(self.topics)}
        return offsets

"""How far a query has read: the offsets that Spark keeps in the checkpoint.

As JSON: `{"log": {"0": n, ...}, "events": {"0": n, ...}, "rounds": n, "round": n}`. Each n is an exclusive end:
the next offset to read of that partition. A partition that is missing is read from its beginning; so the constant
with which a query starts (`INITIAL`, which must not depend on the cluster: Spark asks for it again after a crash
in the first batch) covers partitions that appear later, too. `round` is the number of the newest round that was
taken, `time` its time, `elapsed` the time that passed over all rounds; they are missing before the first.
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
    """Offsets in code form.

    Attributes:
        log: Next offset per partition of the offsets log.
        events: Next offset per partition of the events topic.
        rounds: Next offset of the rounds topic.
        round: Number of the newest round that was taken; -1 before the first.
        time: Its time, ms; -1 before the first.
        elapsed: Time that passed from the first round taken to the newest one, ms: see `plan.elapsed_after`.
    """

    log: Mapping[int, int] = field(default_factory=dict)
    events: Mapping[int, int] = field(default_factory=dict)
    rounds: int = 0
    round: int = -1
    time: int = -1
    elapsed: int = 0

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
        )

    def write(self) -> dict[str, Any]:
        """As JSON values. Spark compares offsets as text, so partitions are written in order."""
        offsets: dict[str, Any] = {
            "log": {str(partition): self.log[partition] for partition in sorted(self.log)},
            "events": {str(partition): self.events[partition] for partition in sorted(self.events)},
            "rounds": self.rounds,
        }
        if self.round >= 0:
            offsets |= {"round": self.round, "time": self.time, "elapsed": self.elapsed}
        return offsets

"""What is kept of the partitions that a group consumes, and of what happened to their committed offsets."""

from __future__ import annotations

import msgspec

from streaming.groups.lag.rhythm import Rhythm
from streaming.groups.lag.trend import Trend

__all__ = ["OffsetEvents", "PartitionState"]


class PartitionState(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """One partition as the group consumes it.

    Attributes:
        committed: Last committed offset; -1 when there is none.
        commit_time: Record time of the last commit, ms; -1 when there is none.
        commits: Commits since the last row of `lag`.
        sampled_commits: Commits since the last round that knew the lag.
        rewound_by: Largest step back since the last row, in offsets.
        offset_deleted: The committed offset was deleted since the last row.
        rhythm: Its recent pauses.
        trend: What its newest rounds have shown.
        start: Log start offset at the newest round that knew it; -1 before the first.
        row: What the last row said, as far as a change of it makes a new row; None before the first row.
        row_at: Steady time of the last row, ms.
        of_topic: Topic id of the last commit, or "" where it has none and the topic was made anew since; None where it
            is a commit of the topic that the newest round showed (`offset_events.py`).
    """

    committed: int = -1
    commit_time: int = -1
    commits: int = 0
    sampled_commits: int = 0
    rewound_by: int = 0
    offset_deleted: bool = False
    rhythm: Rhythm = msgspec.field(default_factory=Rhythm)
    trend: Trend = msgspec.field(default_factory=Trend)
    start: int = -1
    row: tuple[int, int | None, int | None, int | None, int | None, str | None, str, str | None, bool] | None = None
    row_at: int = -1
    of_topic: str | None = None

    def forget_rounds(self) -> None:
        """Judge anew from here on: what rounds have shown until now is of another topic, or records are missing."""
        self.trend = Trend()
        self.start = -1

    def is_void(self) -> bool:
        """Whether nothing is known that a row or a judgement could still need."""
        return self.committed < 0 and not self.commits and not self.offset_deleted and self.row is None


class OffsetEvents(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What happened to committed offsets and is still to be said (`offset_events.py`).

    Attributes:
        rewound: Largest step back by topic and partition, where the offset is still below where it was.
        left_behind: Partitions by topic whose offset is one of a topic before of the same name; the value says nothing.
        deleted: By topic, how many partitions lost their offset in the newest round in which any did.
        deleted_at: Its time, ms; -1 when there was none.
    """

    rewound: dict[str, dict[int, int]] = {}
    left_behind: dict[str, dict[int, int]] = {}
    deleted: dict[str, int] = {}
    deleted_at: int = -1

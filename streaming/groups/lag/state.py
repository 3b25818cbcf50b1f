"""The state of the partitions that a group consumes, and of recent events on their committed offsets."""

from __future__ import annotations

import msgspec

from streaming.groups.lag.rhythm import Rhythm
from streaming.groups.lag.trend import Trend

__all__ = ["OffsetEvents", "PartitionState"]


class PartitionState(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """One partition as the group consumes it.

    Attributes:
        committed: Last committed offset; -1 if there is none.
        commit_time: Record time of the last commit, ms; -1 if there is none.
        commits: Commits since the last row of `lag`.
        sampled_commits: Commits since the last round that knew the lag.
        rewound_by: Largest step back since the last row, in offsets.
        offset_deleted: The committed offset was deleted since the last row.
        rhythm: Its recent pauses.
        trend: Its lag over the newest rounds.
        start: Log start offset at the newest round that knew it; -1 before the first.
        row: The values of the last row that cause a new row when they change; None before the first row.
        row_at: Elapsed time at the last row, ms.
        of_topic: Topic id of the last commit, or "" if it has none and the topic was created again since; None if the
            commit is for the topic that the newest round showed (`offset_events.py`).
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
        """Drop the trend, because earlier rounds showed another topic, or because records are missing."""
        self.trend = Trend()
        self.start = -1

    def is_void(self) -> bool:
        """Whether the state holds nothing that a row or a judgement could still need."""
        return self.committed < 0 and not self.commits and not self.offset_deleted and self.row is None


class OffsetEvents(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Events on committed offsets that findings still report (`offset_events.py`).

    Attributes:
        rewound: Largest step back, in offsets, by topic and partition, while the offset is still below where it was.
        left_behind: By topic, the partitions whose committed offset is from an earlier topic of that name; the values
            mean nothing.
        deleted: Number of partitions by topic whose offset was deleted, at the newest round with a deletion.
        deleted_at: Time of that round, ms; -1 if there was none.
    """

    rewound: dict[str, dict[int, int]] = {}
    left_behind: dict[str, dict[int, int]] = {}
    deleted: dict[str, int] = {}
    deleted_at: int = -1

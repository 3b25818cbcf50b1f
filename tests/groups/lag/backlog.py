"""A group of one topic, x, and rounds that show how its log grows."""

from __future__ import annotations

from typing import Any

from streaming.groups.rows import LagRow
from streaming.records import GroupObservation
from tests.groups.build import (
    MINUTE,
    SECOND,
    START,
    Life,
    make_commit,
    make_observation,
    make_topic,
)

HOUR = 60 * MINUTE


def seen(second: int, end: int, **changes: Any) -> GroupObservation:
    """A round at a second, which closes half a second later, with a high watermark."""
    of_topic = {name: changes.pop(name) for name in ("log_start_offsets", "topic_id") if name in changes}
    return make_observation(second, make_topic("x", 1, end=end, **of_topic), **changes)


def see(life: Life, second: int, end: int, **changes: Any) -> None:
    """Let a group live through such a round."""
    life.take(seen(second, end, **changes))


def told(life: Life) -> tuple[float | None, float | None, str | None]:
    """The bounds in the newest row, as seconds since START, and the reason."""
    row = life.rows.lag[-1]
    return _second(row.oldest_unread_time_min), _second(row.oldest_unread_time_max), row.oldest_unread_reason


def _second(time: int | None) -> float | None:
    return None if time is None else (time - START) / SECOND


def caught_up() -> Life:
    """A group that had read all 100 records at 10 and 20."""
    life = Life.after(make_commit(5, 100, topic="x"))
    see(life, 10, 100)
    see(life, 20, 100)
    return life


def behind() -> Life:
    """It has read nothing since: 150 at 30, 200 at 40, 250 at 50."""
    life = caught_up()
    for second, end in ((30, 150), (40, 200), (50, 250)):
        see(life, second, end)
    return life


def health(life: Life) -> tuple[float | None, float | None, str | None, tuple[str, int] | None]:
    row = life.rows.group_health[-1]
    place = (row.time_behind_topic, row.time_behind_partition) if row.time_behind_topic is not None else None
    return row.time_behind_seconds_min, row.time_behind_seconds_max, row.time_behind_reason, place  # type: ignore[return-value]


def told_of(life: Life, topic: str) -> LagRow:
    return [row for row in life.rows.lag if row.topic == topic][-1]

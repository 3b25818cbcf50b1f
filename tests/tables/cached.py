"""A table of health in memory, as most tests of `TableCache` hold it: its rows, and what is asked of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from streaming.tables import DeltaLake, TableCache, Wanted, table_named

HOUR = 3_600_000

HEALTH = Wanted(
    current=frozenset({"group_id", "verdict", "findings"}),
    past=frozenset({"group_id", "lag_total"}),
    reach=timedelta(hours=1),
)
CURRENT = "SELECT cluster, group_id, verdict, findings FROM group_health_current ORDER BY ALL"
CURRENT_OF_TWO = "SELECT group_id, verdict FROM group_health_current ORDER BY ALL"
PAST = "SELECT cluster, group_id, round_time, lag_total FROM group_health ORDER BY ALL"


def health(group: str, round_: int, *, cluster: str = "c", hour: float = 0.0, ended: bool = False) -> list[Any]:
    ms = int(hour * HOUR) + round_
    values = {
        "cluster": cluster, "group_id": group, "round": round_, "round_time": ms, "event_date": ms // 86_400_000,
        "ended": ended, "verdict": f"v{round_}", "lag_total": round_,
        "findings": [["partitions_pending_handover", 5_000, group]],
    }  # fmt: skip
    return [values.get(column.name) for column in table_named("group_health").columns]


def cache(lake: DeltaLake, past: timedelta = timedelta(hours=24), **wanted: Wanted) -> TableCache:
    return TableCache(lake.root, wanted or {"group_health": HEALTH}, past)


def read_all(cache: TableCache) -> None:
    while cache.behind:
        cache.read_on()


def begun(lake: DeltaLake, past: timedelta = timedelta(hours=24), **wanted: Wanted) -> TableCache:
    """A cache that has read the whole lake."""
    followed = cache(lake, past, **wanted)
    followed.update()
    read_all(followed)
    return followed

"""Load and topics beside the rounds, for a made lake: windows of the rates by member, and looks at topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeLake

_HEARTBEAT_MS = 600_000

BUSY, NOBODYS = "telemetry-raw", "nobodys"
"""Topics that no group of the made lakes reads: of the first it is not known whether somebody does."""


def add_load(lake: MadeLake, windows: int = 3, untold: Sequence[str] = ()) -> None:
    """Write windows of the rates up to the lake's newest round, and as many looks at each topic.

    Args:
        lake: The lake.
        windows: How many.
        untold: Topics that the probe does not look at.
    """
    ms = int(lake.end.timestamp() * 1000)
    member_load: list[dict[str, Any]] = []
    looks: list[dict[str, Any]] = []
    readers: dict[str, set[str]] = {}
    rates: dict[str, list[float]] = {}
    for group in lake.groups:
        for topic, count in group.topics.items():
            readers.setdefault(topic, set()).add(group.name[:1000])
            rates[topic] = [group.rate(partition) for partition in range(count)]
    for ago in range(windows - 1, -1, -1):
        at = ms - ago * _HEARTBEAT_MS
        seen = {"cluster": CLUSTER, "round": lake.last - 60 * ago, "round_time": at, "event_date": at // 86_400_000,
                "ended": False}  # fmt: skip
        for group in lake.groups:
            actual = group.actual(drifted=group.verdict == "drifted") if group.members else {}
            total = sum(group.rate(partition) for _, partition in group.places)
            for place, client in enumerate(group.members):
                own = [group.rate(p) for (_, p), owner in actual.items() if owner == place]
                member_load.append(
                    {**seen, "group_id": group.name, "member_id": group.member_id(place), "source": "log",
                     "client_id": client, "client_host": f"/10.0.3.{17 + place}", "partitions": len(own),
                     "produced_per_second": sum(own), "consumed_per_second": sum(own),
                     "share": sum(own) / total if total else None}
                )  # fmt: skip
        for topic, found in rates.items():
            if topic in untold:
                continue
            looks.append(
                {**seen, "topic": topic, "topic_id": "kqzX0l5mT5uM8Qb1f0aQ2g", "partitions": len(found),
                 "offline_partitions": 0, "records_max": 10_000 * len(found), "groups": len(readers[topic]),
                 "readers": sorted(readers[topic]), "read_by_nobody": False, "rates_over_seconds": 600.0,
                 **_grown(sum(found), first=ago == windows - 1)}
            )  # fmt: skip
        for topic, unread in ((NOBODYS, {"read_by_nobody": True, "read_by_nobody_since": ms - 7_200_000}),
                              (BUSY, {"read_by_nobody_reason": "no_right"}),
                              (HOSTILE[0], {"read_by_nobody": True, "read_by_nobody_since": ms})):  # fmt: skip
            looks.append(
                {**seen, "topic": topic, "partitions": 24, "offline_partitions": 2 if topic == BUSY else 0,
                 "records_max": 4_000_000, "groups": 0, "readers": [], "rates_over_seconds": 600.0, **unread,
                 **_grown(900.0 if topic == BUSY else 0.0, first=ago == windows - 1)}
            )  # fmt: skip
    lake.add("member_load", *member_load)
    lake.add("topics", *looks)


def _grown(rate: float, *, first: bool) -> dict[str, Any]:
    if first:
        return {"produced_reason": "first_look", "log_bytes": round(1e6 * rate), "bytes_reason": "first_look"}
    return {
        "produced_per_second": rate,
        "log_bytes": round(1.1e6 * rate),
        "produced_bytes_per_second_min": 160 * rate,
    }

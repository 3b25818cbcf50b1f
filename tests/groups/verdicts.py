"""The verdict on a decision, and clients whose bytes identify the leader's library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming.groups.rows import DriftRow, WhatIfRow
from streaming.records import Member
from tests.groups.build import Life, make_observation, make_record, make_topic
from tests.groups.recomputed import recompute_all

LIBRDKAFKA: dict[str, Any] = {"user_data": b"", "client_id": "rdkafka"}
KAFKA_PYTHON: dict[str, Any] = {"user_data": b"", "subscription_version": 0, "client_id": "kafka-python-3.0.12"}
JAVA: dict[str, Any] = {}


def seen_for_long(life: Life, *topics: tuple[str, int]) -> None:
    """Let rounds show these topics for longer than the grace period, up to record 2000."""
    for position in (1, 1990):
        life.take(make_observation(position, *(make_topic(topic, count) for topic, count in topics)))
    life.rows.drift.clear()


def verdict_of(life: Life) -> DriftRow:
    """The only verdict of a life, after a check against its inputs."""
    (row,) = life.rows.drift
    recompute_all(life.rows, life.config.custom.by_name())
    return row


def judged(*members: Member, counts: Mapping[str, int | None], protocol: str = "range", **changes: Any) -> DriftRow:
    """The verdict on a first decision, with the round right after it."""
    life = Life(configured=changes.pop("configured", None))
    life.take(
        make_record(5, members, protocol=protocol, **changes),
        make_observation(10, *(make_topic(topic, count) for topic, count in counts.items())),
    )
    return verdict_of(life)


def the_row(rows: list[WhatIfRow], strategy: str) -> WhatIfRow:
    (row,) = (row for row in rows if row.strategy == strategy)
    return row

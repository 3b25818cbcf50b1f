"""A lost state rebuilt: log and rounds are read again, and only what the tables do not have is written."""

from __future__ import annotations

from streaming.job.rebuild.lake import RebuildingLake, gone_members, incarnations_of
from streaming.job.rebuild.plan import (
    Rebuild,
    Topics,
    begin,
    look_at_topics,
    new_rows,
    plan_rebuild,
    read_plan,
    write_gap,
    write_plan,
)

__all__ = [
    "Rebuild",
    "RebuildingLake",
    "Topics",
    "begin",
    "gone_members",
    "incarnations_of",
    "look_at_topics",
    "new_rows",
    "plan_rebuild",
    "read_plan",
    "write_gap",
    "write_plan",
]

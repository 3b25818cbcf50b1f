"""The verdict on a decision. docs/verdicts.md explains its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from assignors import PartitionRacks
from streaming.groups.rows import DriftedPartition
from streaming.groups.verdict_inputs import VerdictInputs

__all__ = [
    "DRIFTED",
    "IDENTICAL",
    "MISPLACED",
    "NOT_APPLICABLE",
    "PENDING",
    "TOO_MANY",
    "UNASSIGNED",
    "UNVERIFIED",
    "Judged",
    "StandingVerdict",
    "Verdict",
    "too_many",
]

IDENTICAL = "identical"
DRIFTED = "drifted"
UNVERIFIED = "unverified"
NOT_APPLICABLE = "not_applicable"
PENDING = "pending"

MISPLACED = "misplaced"
"""Kind of a drifted partition that has the wrong owner, or does not exist."""

UNASSIGNED = "unassigned"
"""Kind of a drifted partition that should have an owner and has none."""


TOO_MANY = "too many generations passed without a round: not recomputed"
"""Reason of a decision that was dropped (`churn.WAITING_MAX`)."""


def too_many(more: int) -> str:
    """Reason for a dropped decision; `more` counts the dropped decisions before it, which have no rows of their own."""
    return TOO_MANY if not more else f"{TOO_MANY}, nor are {more:,} before it, which have no row here"


@dataclass(frozen=True, slots=True)
class Judged:
    """The decision's own columns in its rows of `drift` and `what_if`.

    Attributes:
        group: Group id.
        decision: Its number: the log offset of its record.
        log_partition: Partition of the offsets log; -1 when unknown.
        record_time: Time of the record, ms.
        incarnation: The group's incarnation.
        generation: Generation, or epoch.
        strategy: The strategy that the members agreed on, or the server assignor that they request; None if there is
            none.
    """

    group: str
    decision: int
    log_partition: int
    record_time: int
    incarnation: int
    generation: int
    strategy: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one decision.

    Attributes:
        verdict: "identical", "drifted", "unverified" or "not_applicable".
        reason: Why, as text; None for "identical".
        library: The candidate that fits, as text; None when none does.
        candidates: Number of candidates tried.
        drifted: Partitions whose owner is not the expected one; empty unless drifted.
        counts: Partition counts by topic with which the candidate fits; None when none does.
        racks: Racks of the replicas with which it fits; None when none does, or when it was tried without racks.
        inputs: The inputs of the candidate that fits; if none does, of the first that could be computed, or else of
            the first that was tried. None when none was tried.
    """

    verdict: str
    reason: str | None = None
    library: str | None = None
    candidates: int = 0
    drifted: tuple[DriftedPartition, ...] = ()
    counts: Mapping[str, int] | None = None
    racks: PartitionRacks | None = None
    inputs: VerdictInputs | None = None


class StandingVerdict(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The part of the newest judged decision's verdict that `group_health` repeats.

    Attributes:
        verdict: As in `drift`.
        reason: As in `drift`.
        drifted_count: Number of drifted partitions.
    """

    verdict: str
    reason: str | None
    drifted_count: int

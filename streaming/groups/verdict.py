"""What is said of a decision, in the words of DESIGN.md 3."""

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
"""Kind of a drifted partition that belongs to somebody else, or does not exist."""

UNASSIGNED = "unassigned"
"""Kind of a drifted partition that belongs to nobody and should."""


TOO_MANY = "too many generations passed without a round: not recomputed"
"""Reason of a decision that was dropped (`churn.WAITING_MAX`)."""


def too_many(more: int) -> str:
    """Reason of a decision that was dropped, with how many before it not even their number was kept."""
    return TOO_MANY if not more else f"{TOO_MANY}, nor are {more:,} before it, which have no row here"


@dataclass(frozen=True, slots=True)
class Judged:
    """The columns that rows about one decision, of `drift` and of `what_if`, have from it.

    Attributes:
        group: Group id.
        decision: Its number: the log offset of its record.
        log_partition: Partition of the offsets log; -1 when not known.
        record_time: Time of the record, ms.
        incarnation: Which group of this name.
        generation: Generation, or epoch.
        strategy: Strategy that the members agreed on, or server assignor that they ask for; None where there is none.
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
    """What is said of one decision.

    Attributes:
        verdict: "identical", "drifted", "unverified" or "not_applicable".
        reason: Why, where it is not plain from the verdict; None for "identical".
        library: The candidate that fitted, as text; None when none did.
        candidates: Candidates that were tried.
        drifted: Partitions whose owner is not the expected one; empty unless drifted.
        counts: Partition counts by topic with which the candidate fitted; None when none did.
        racks: Racks of the replicas with which it fitted; None when none did, or when it was asked without.
        inputs: What the candidate was given that fitted; where none did, the first that could be computed, or else the
            first that was asked. None when none was.
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
    """What `group_health` repeats of the verdict on the newest judged decision.

    Attributes:
        verdict: As in `drift`.
        reason: As in `drift`.
        drifted_count: How many partitions drifted.
    """

    verdict: str
    reason: str | None
    drifted_count: int

"""Verdicts on decisions, for all kinds of groups: their values, and the pipeline that a round drives.

The pipeline judges the waiting decisions, limits their total cost and writes their rows. What differs between classic
and modern groups is behind `Kind`. docs/verdicts.md explains the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from assignors import PartitionRacks
from streaming.groups.budget import NEWEST, of_round
from streaming.groups.context import Context, GroupConfig
from streaming.groups.rows import LOG, DriftedPartition, DriftRow, WhatIfRow, partition_column
from streaming.groups.verdict_inputs import VerdictInputs, pack_inputs
from streaming.records import GroupObservation
from streaming.times import day_of

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
    "Kind",
    "StandingVerdict",
    "Verdict",
    "mismatch",
    "standing",
    "too_many",
    "write_verdicts",
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


_D_contra = TypeVar("_D_contra", contravariant=True)


class Kind(Protocol[_D_contra]):
    """How to judge the decisions of one kind of group at a round."""

    def judge(self, decision: _D_contra, *, later_is_judged: bool) -> Verdict | None:
        """Judge a decision; None while a later round may show what is missing, never if `later_is_judged`."""

    def judged_of(self, decision: _D_contra) -> Judged:
        """The decision's own columns."""

    def what_if(self, decision: _D_contra, judged: Judged, verdict: Verdict, *, crowded: bool) -> list[WhatIfRow]:
        """The decision's `what_if` rows; `crowded` if it is not one of the newest (`budget.NEWEST`)."""


_Decision = TypeVar("_Decision")


def write_verdicts(
    waiting: Sequence[_Decision], kind: Kind[_Decision], observation: GroupObservation, context: Context
) -> list[Verdict]:
    """Judge the decisions that can be judged now, and write their rows of `drift` and `what_if`.

    The total cost is limited (`budget.ROUND`), so the newest decision comes first: it is the one that `group_health`
    shows. Once a decision is judged, the earlier ones do not wait any longer.

    Args:
        waiting: Decisions that no round has judged yet, oldest first.
        kind: How to judge them.
        observation: The round.
        context: Rows are written here.

    Returns:
        Verdicts on the first decisions of `waiting`, in the same order; the remaining decisions wait on.
    """
    verdicts: list[Verdict] = []
    with of_round():
        for decision in reversed(waiting):
            verdict = kind.judge(decision, later_is_judged=bool(verdicts))
            if verdict is not None:
                verdicts.append(verdict)
    verdicts.reverse()
    judged = [kind.judged_of(decision) for decision in waiting[: len(verdicts)]]
    others: list[list[WhatIfRow]] = []
    with of_round():
        for at in reversed(range(len(verdicts))):
            crowded = at < len(waiting) - NEWEST
            others.append(kind.what_if(waiting[at], judged[at], verdicts[at], crowded=crowded))
    for of_decision, verdict in zip(judged, verdicts, strict=True):
        context.rows.drift.append(_row(of_decision, verdict, observation, context.config))
    context.rows.what_if.extend(row for rows in reversed(others) for row in rows)
    return verdicts


def _row(judged: Judged, verdict: Verdict, observation: GroupObservation, config: GroupConfig) -> DriftRow:
    """One verdict as a row of `drift`."""
    expected = config.expected_strategy(judged.group)
    return DriftRow(
        cluster=config.cluster,
        group_id=judged.group,
        decision=judged.decision,
        source=LOG,
        log_partition=partition_column(judged.log_partition),
        record_time=judged.record_time,
        event_date=day_of(judged.record_time),
        topic=None,
        incarnation=judged.incarnation,
        generation=judged.generation,
        round=observation.round,
        round_time=observation.time,
        strategy=judged.strategy,
        expected_strategy=expected,
        strategy_mismatch=mismatch(expected, judged.strategy),
        verdict=verdict.verdict,
        reason=verdict.reason,
        matching_library=verdict.library,
        candidates=verdict.candidates,
        drifted_count=len(verdict.drifted),
        drifted_partitions=verdict.drifted,
        inputs=None if verdict.inputs is None else pack_inputs(verdict.inputs),
    )


def mismatch(expected: str | None, strategy: str | None) -> bool | None:
    """Whether a group runs another strategy than the configured one; None when either is unknown."""
    return None if expected is None or strategy is None else expected != strategy


def standing(verdicts: Sequence[Verdict]) -> StandingVerdict | None:
    """The newest of these verdicts, which are oldest first; None if there are none."""
    if not verdicts:
        return None
    return StandingVerdict(verdicts[-1].verdict, verdicts[-1].reason, len(verdicts[-1].drifted))

"""The verdicts that a round makes possible, for all kinds of groups.

This module judges the waiting decisions, limits their total cost and writes their rows. What differs between classic
and modern groups is behind `Kind`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from streaming.groups.budget import NEWEST, of_round
from streaming.groups.config import GroupConfig
from streaming.groups.context import Context
from streaming.groups.rows import LOG, DriftRow, WhatIfRow, partition_column
from streaming.groups.verdict import Judged, StandingVerdict, Verdict
from streaming.groups.verdict_inputs import pack_inputs
from streaming.records import GroupObservation
from streaming.times import day_of

__all__ = ["Kind", "mismatch", "standing", "write_verdicts"]

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

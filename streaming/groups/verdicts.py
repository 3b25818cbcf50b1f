"""Verdicts on decisions, for all kinds of groups: their values, their inputs, and the pipeline that a round drives.

The pipeline judges the waiting decisions, limits their total cost and writes their rows. What differs between classic
and modern groups is a value of `Judging`. docs/verdicts.md explains the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec

from assignors import Assignment, PartitionRacks, differences
from streaming.groups.context import NEWEST, Context, GroupConfig, of_round
from streaming.groups.rows import DriftedPartition, DriftRow, WhatIfRow
from streaming.groups.verdict_inputs import VerdictInputs, pack_inputs
from streaming.records import GroupObservation

IDENTICAL = "identical"
DRIFTED = "drifted"
UNVERIFIED = "unverified"
NOT_APPLICABLE = "not_applicable"
PENDING = "pending"

INVARIANT: Final = "invariant"
"""Basis of a drift: a partition has two owners, or an owner that no client of that strategy gives it."""

PROMISE: Final = "promise"
"""Basis of a drift: what the strategy's own name promises is broken, as no known client breaks it."""

CONFIGURED: Final = "configured"
"""Basis of a drift: the settings name another strategy than the one that the group runs."""

DECLARED: Final = "declared"
"""Basis of a drift: by the word of the operator, of a plug-in or of RocketMQ's members it is known who computed the
assignment and how, and that gives another one."""

UNEXPLAINED: Final = "no known client gives this assignment"
"""Reason of a decision that no candidate gives. It proves nothing: nobody can list all the world's clients."""

MISPLACED = "misplaced"
"""Kind of a drifted partition that has the wrong owner, or does not exist."""

UNASSIGNED = "unassigned"
"""Kind of a drifted partition that should have an owner and has none."""

WAITING_MAX: Final = 64
"""Most decisions that wait for a verdict, the newest: those before have no row of `drift`. Without a limit, a flapping
group would grow the state while there are no rounds, and a verdict that late helps nobody."""

# Generations are int32, and a corrupt record may contain any value.
_INT32 = 2**31 - 1


def generations_between(before: int, generation: int) -> int:
    """Number of generations, or epochs, skipped between two decisions."""
    return min(_INT32, max(0, generation - before - 1))


def why_not_shown(topic: str, config: GroupConfig, unknown: str = "partition count") -> str:
    """Why a verdict cannot go by a topic that no round has shown."""
    if config.watches_topic(topic):
        return f"no round has shown topic {topic[:100]!r}: its {unknown} is not known"
    return f"topic {topic[:100]!r} is excluded by the filters: its partition count is not known"


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged decision, as its rows of `drift` and `what_if` have it.

    Attributes:
        columns: Those that every row about it has (`Context.of_a_decision`).
        strategy: The strategy that the members agreed on, or the server assignor that they request; None if there is
            none.
        topic: The topic that was judged alone; None where all were judged together.
    """

    columns: dict[str, Any]
    strategy: str | None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Nearest:
    """The computed candidate whose result differs from the assignment in the fewest partitions.

    Attributes:
        library: The candidate, as text.
        differing: Partitions with another owner than it gives, in the form of drifted ones.
    """

    library: str
    differing: tuple[DriftedPartition, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one decision.

    Attributes:
        verdict: "identical", "drifted", "unverified" or "not_applicable".
        reason: Why, as text; None for "identical".
        basis: What "drifted" rests on: `INVARIANT`, `PROMISE`, `CONFIGURED` or `DECLARED`; None for any other verdict.
        library: The candidate that fits, as text; None when none does.
        candidates: Number of candidates tried.
        drifted: Partitions whose owner is not the expected one; empty unless drifted.
        counts: Partition counts by topic with which the candidate fits; None when none does.
        racks: Racks of the replicas with which it fits; None when none does, or when it was tried without racks.
        inputs: The inputs of the candidate that fits; if none does, of the nearest one, or else of the first that was
            tried. None when none was tried. Those of the configured strategy where the basis is `CONFIGURED` and it
            could be computed.
        nearest: The nearest candidate; None when one fits, or none could be computed.
        own: The verdict on the strategy that the group runs, where the basis is `CONFIGURED`; else None.
    """

    verdict: str
    reason: str | None = None
    basis: str | None = None
    library: str | None = None
    candidates: int = 0
    drifted: tuple[DriftedPartition, ...] = ()
    counts: Mapping[str, int] | None = None
    racks: PartitionRacks | None = None
    inputs: VerdictInputs | None = None
    nearest: Nearest | None = None
    own: str | None = None

    @property
    def on_running(self) -> str:
        """The verdict on the strategy that the group runs."""
        return self.own or self.verdict


class StandingVerdict(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The part of the newest judged decision's verdict that `group_health` repeats.

    Attributes:
        verdict: As in `drift`.
        reason: As in `drift`.
        drifted_count: Number of drifted partitions.
        basis: As in `drift`.
        own: The verdict on the strategy that the group runs, where the basis is `CONFIGURED`; else None.
    """

    verdict: str
    reason: str | None
    drifted_count: int
    basis: str | None = None
    own: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What the configured strategy would have decided.

    Attributes:
        drifted: Partitions with another owner than it gives.
        inputs: What it was given.
    """

    drifted: tuple[DriftedPartition, ...]
    inputs: VerdictInputs | None


_Decision = TypeVar("_Decision")


@dataclass(frozen=True, slots=True)
class Judging(Generic[_Decision]):
    """How to judge the decisions of one kind of group at a round.

    Attributes:
        judge: The verdict on a decision, by whether a later one is judged. None while a later round may show what is
            missing, and never if a later one is judged.
        judged_of: A decision's own columns.
        expected_by: What another strategy would have decided in the place of the group's own, or why nobody can tell.
        what_if: The `what_if` rows of a decision that the verdict applies to, by whether it is one of too many between
            two rounds (`context.NEWEST`).
    """

    judge: Callable[[_Decision, bool], Verdict | None]
    judged_of: Callable[[_Decision, Context], Judged]
    expected_by: Callable[[_Decision, Verdict, str], Expected | str]
    what_if: Callable[[_Decision, Judged, Verdict, bool], list[WhatIfRow]] = lambda *_: []


def write_verdicts(
    waiting: Sequence[_Decision], kind: Judging[_Decision], observation: GroupObservation, context: Context
) -> list[Verdict]:
    """Judge the decisions that can be judged now, and write their rows of `drift` and `what_if`.

    The total cost is limited (`context.ROUND`), so the newest decision comes first: it is the one that `group_health`
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
            verdict = kind.judge(decision, bool(verdicts))
            if verdict is not None:
                runs = kind.judged_of(decision, context).strategy
                expected_by = partial(kind.expected_by, decision, verdict)
                verdicts.append(against_configured(verdict, observation.configured_strategy, runs, expected_by))
    verdicts.reverse()
    judged = [kind.judged_of(decision, context) for decision in waiting[: len(verdicts)]]
    others: list[list[WhatIfRow]] = []
    with of_round():
        for at in reversed(range(len(verdicts))):
            if verdicts[at].verdict != NOT_APPLICABLE:
                crowded = at < len(waiting) - NEWEST
                others.append(kind.what_if(waiting[at], judged[at], verdicts[at], crowded))
    for of_decision, verdict in zip(judged, verdicts, strict=True):
        context.rows.drift.append(drift_row(of_decision, verdict, observation))
    context.rows.what_if.extend(row for rows in reversed(others) for row in rows)
    return verdicts


def against_configured(
    own: Verdict, strategy: str | None, runs: str | None, expected_by: Callable[[str], Expected | str]
) -> Verdict:
    """The verdict against the configured strategy where the group runs another one; else its own verdict.

    Two owners of a partition are graver than a strategy that nobody configured, so that verdict stays.

    Args:
        own: The verdict on the strategy that it runs.
        strategy: The configured strategy; None where none is configured.
        runs: The strategy that it runs; None where that is not known.
        expected_by: What the configured strategy would have decided, or why nobody can tell.
    """
    if own.verdict == NOT_APPLICABLE or own.basis == INVARIANT or not mismatch(strategy, runs):
        return own
    reason = f"the group runs {str(runs)[:100]}, and {str(strategy)[:100]} is configured"
    expected = expected_by(str(strategy))
    if isinstance(expected, str):
        reason, expected = f"{reason}; what that gives is not known: {expected}", Expected((), own.inputs)
    return replace(
        own,
        verdict=DRIFTED,
        reason=reason,
        basis=CONFIGURED,
        drifted=expected.drifted,
        inputs=expected.inputs,
        own=own.verdict,
    )


def drifted_between(expected: Assignment, actual: Assignment) -> tuple[DriftedPartition, ...]:
    """The partitions that have another owner than expected."""
    return tuple(
        DriftedPartition(
            topic=d.topic,
            partition=d.partition,
            kind=MISPLACED if d.actual else UNASSIGNED,
            expected=d.expected[0] if d.expected else None,
            actual=d.actual,
        )
        for d in differences(expected, actual)
    )


def drift_row(judged: Judged, verdict: Verdict, observation: GroupObservation) -> DriftRow:
    """One verdict as a row of `drift`."""
    configured, nearest = observation.configured, verdict.nearest
    strategy = observation.configured_strategy
    return DriftRow(
        **judged.columns,
        topic=judged.topic,
        round=observation.round,
        round_time=observation.time,
        strategy=judged.strategy,
        expected_strategy=strategy,
        strategy_mismatch=mismatch(strategy, judged.strategy),
        configuration_version=configured.version if configured is not None else None,
        verdict=verdict.verdict,
        basis=verdict.basis,
        own_verdict=verdict.on_running,
        reason=verdict.reason,
        matching_library=verdict.library,
        candidates=verdict.candidates,
        drifted_count=len(verdict.drifted),
        drifted_partitions=verdict.drifted,
        nearest_library=nearest.library if nearest is not None else None,
        nearest_differing=len(nearest.differing) if nearest is not None else None,
        inputs=None if verdict.inputs is None else pack_inputs(verdict.inputs),
    )


def mismatch(expected: str | None, strategy: str | None) -> bool | None:
    """Whether a group runs another strategy than the configured one; None when either is unknown."""
    if expected is None or strategy is None:
        return None
    return expected != strategy


def standing(verdicts: Sequence[Verdict]) -> StandingVerdict | None:
    """The newest of these verdicts, which are oldest first; None if there are none."""
    if not verdicts:
        return None
    newest = verdicts[-1]
    return StandingVerdict(newest.verdict, newest.reason, len(newest.drifted), newest.basis, newest.own)

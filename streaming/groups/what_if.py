"""Rows of `what_if`: the result that each strategy would have had at one decision, next to the strategy that runs.

They are written with the verdict on the decision, when its partition counts are known. Each kind of group tries the
strategies that its members, its brokers or its clients may run (`what_if.py` in its room).

A decision that is too large, and all but the newest of a rebalance storm, get rows with the reason alone: a round must
not be delayed by what-ifs that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from assignors import Assignment, AssignorError, Bounds, Group, Load
from assignors.measures import bounds_of, outcome
from streaming.groups.context import NEWEST, GroupConfig, of_decision
from streaming.groups.rows import WhatIfRow
from streaming.groups.verdicts import Judged
from streaming.records import GroupObservation

CROWDED = f"more than {NEWEST} decisions came between two rounds: only the newest are computed"
UNKNOWN_BEFORE = "the members' previous partitions are not known"

_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Compared:
    """What the strategies of one decision are compared by.

    Attributes:
        group: The group as its assignors see it.
        before: The members' previous partitions; None where they are not known.
        load: What the partitions have to carry; None where it is not known.
        gives: What a strategy gives, and the library that it is computed as; raises `AssignorError` where nobody can
            tell.
    """

    group: Group
    before: Assignment | None
    load: Load | None
    gives: Callable[[str], tuple[str | None, Assignment]]


def what_if_rows(
    judged: Judged,
    observation: GroupObservation,
    config: GroupConfig,
    strategies: Mapping[str, bool | None],
    size: tuple[int, int],
    compared: Callable[[], Compared | str | None],
    *,
    crowded: bool = False,
) -> list[WhatIfRow]:
    """The rows of one decision; where nothing can be computed, only of what the group runs, or may run.

    Args:
        judged: The decision.
        observation: The round at which it was judged.
        config: Settings.
        strategies: The strategies, each with whether the group runs it; None where that is not known.
        size: The decision's partitions and members.
        compared: How to compare them, or why that is not possible; may raise `AssignorError`.
        crowded: It is not one of the newest.
    """
    if not config.what_if_max_size:
        return []
    row_of = partial(_unfilled_row, judged, observation)
    try:
        with of_decision():
            by = CROWDED if crowded else too_large(*size, config) or compared()
            if isinstance(by, Compared):
                bounds = bounds_of(by.group, by.before or {})
                return [_filled(row_of(name, runs=runs), by, bounds) for name, runs in strategies.items()]
    except AssignorError as error:
        by = str(error)[:_LONGEST_REASON]
    return [row_of(name, runs=runs, reason=by) for name, runs in strategies.items() if runs is not False]


def _unfilled_row(
    judged: Judged, observation: GroupObservation, strategy: str, *, runs: bool | None, reason: str | None = None
) -> WhatIfRow:
    """The row for one strategy at one decision, without a result; `reason` is why there is none."""
    configured = observation.configured_strategy
    return WhatIfRow(
        **judged.columns,
        round=observation.round,
        round_time=observation.time,
        strategy=strategy,
        runs=runs,
        configured=None if configured is None else configured == strategy,
        library=None,
        reason=reason,
    )


def _filled(row: WhatIfRow, by: Compared, bounds: Bounds) -> WhatIfRow:
    """The row with what its strategy gives, or with the reason why nobody can tell."""
    known_before = by.before is not None
    row = msgspec.structs.replace(
        row,
        partitions_moved_optimal=bounds.partitions_moved_optimal if known_before else None,
        imbalance_optimal=bounds.imbalance_optimal,
    )
    try:
        library, answer = by.gives(row.strategy)
    except AssignorError as error:
        return msgspec.structs.replace(row, reason=str(error)[:_LONGEST_REASON])
    found = outcome(by.group, by.before or {}, answer, by.load)
    return msgspec.structs.replace(
        row,
        library=library,
        partitions_moved=found.partitions_moved if known_before else None,
        imbalance=found.imbalance,
        reason=None if known_before else UNKNOWN_BEFORE,
        load_imbalance=found.load_imbalance,
    )


def too_large(partitions: int, members: int, config: GroupConfig) -> str | None:
    """Why a decision of this size gets no what-ifs; None if it does."""
    if partitions * members <= config.what_if_max_size:
        return None
    return (
        f"{partitions:,} partitions times {members:,} members are more than what_if_max_size "
        f"({config.what_if_max_size:,}): only smaller decisions are computed"
    )

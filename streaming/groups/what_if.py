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
from assignors.measures import outcome
from streaming.groups.context import NEWEST, GroupConfig, of_decision
from streaming.groups.rows import WhatIfRow
from streaming.groups.verdicts import Judged
from streaming.records import GroupObservation

CROWDED = f"more than {NEWEST} decisions came between two rounds: only the newest are computed"
UNKNOWN_BEFORE = "the members' previous partitions are not known"

_LONGEST_REASON = 200

RowOf = Callable[..., WhatIfRow]
"""The row of one strategy without a result, by its columns `strategy`, `runs` and `library`."""


def what_if_rows(
    judged: Judged,
    observation: GroupObservation,
    without: Mapping[str, bool | None],
    tried: Callable[[RowOf], list[WhatIfRow] | str],
) -> list[WhatIfRow]:
    """The rows of one decision.

    Args:
        judged: The decision.
        observation: The round at which it was judged.
        without: The strategies that have a row where nothing can be computed, each with whether the group runs it.
        tried: Gives the rows of all strategies, or why there are none; may raise `AssignorError`.
    """
    row_of = partial(_unfilled_row, judged, observation)
    try:
        with of_decision():
            rows = tried(row_of)
    except AssignorError as error:
        rows = str(error)[:_LONGEST_REASON]
    if isinstance(rows, str):
        return [row_of(name, runs=runs, reason=rows) for name, runs in without.items()]
    return rows


def _unfilled_row(
    judged: Judged,
    observation: GroupObservation,
    strategy: str,
    *,
    runs: bool | None,
    library: str | None = None,
    reason: str | None = None,
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
        library=library,
        reason=reason,
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """What the strategies of one decision are compared by.

    Attributes:
        group: The group as its assignors see it.
        before: The members' previous partitions; empty where they are not known.
        known_before: They are known.
        bounds: The best that any strategy could reach.
        load: What the partitions have to carry; None where it is not known.
    """

    group: Group
    before: Assignment
    known_before: bool
    bounds: Bounds
    load: Load | None

    def filled(self, row: WhatIfRow, answer: Assignment | AssignorError) -> WhatIfRow:
        """The row with what the strategy gives, or with the reason why nobody can tell."""
        row = msgspec.structs.replace(
            row,
            partitions_moved_optimal=self.bounds.partitions_moved_optimal if self.known_before else None,
            imbalance_optimal=self.bounds.imbalance_optimal,
        )
        if isinstance(answer, AssignorError):
            return msgspec.structs.replace(row, reason=str(answer)[:_LONGEST_REASON])
        found = outcome(self.group, self.before, answer, self.load)
        return msgspec.structs.replace(
            row,
            partitions_moved=found.partitions_moved if self.known_before else None,
            imbalance=found.imbalance,
            reason=None if self.known_before else UNKNOWN_BEFORE,
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

"""What is kept of a classic group: its newest decision, those that wait for a verdict, and what the newest one cost."""

from __future__ import annotations

import msgspec

from streaming.groups.rows import ChurnRow
from streaming.groups.verdict import StandingVerdict
from streaming.records import MembershipRecord

__all__ = ["ClassicDecision", "ClassicState", "OpenCost", "Owned", "Transfer"]

Owned = dict[str, dict[str, tuple[int, ...]]]
"""Partitions by topic by member id."""


class ClassicDecision(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A decision of the group that waits for its verdict, or the newest one.

    Attributes:
        record: The record that closed it.
        kind: Kind of its churn row.
        incarnation: Incarnation it belongs to.
        after_unseen: Records of the group before it may be missing (it is the first one read, or numbers jump):
            it may be the record of a static member's return, which no leader decided.
        before: What each member had before it, while it waits; None where that is not known, or not needed.
        partitions_moved_optimal: As in its churn row, while it waits.
        first_half: It gave up partitions that the next one gives on (cooperative).
        more: Decisions before it that were dropped as it was, and of which nothing is kept (`churn.drop_oldest`).
    """

    record: MembershipRecord
    kind: str
    incarnation: int
    after_unseen: bool = False
    before: Owned | None = None
    partitions_moved_optimal: int | None = None
    first_half: bool = False
    more: int = 0


class Transfer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Partitions given up in a cooperative generation and not yet given on.

    Attributes:
        record: Log offset of the decision that gave them up.
        time: Its record time, ms.
        owners: First owner by topic and partition.
    """

    record: int
    time: int
    owners: dict[str, dict[int, str]]


class OpenCost(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The cost of the newest rebalance while commits that bound it are still awaited.

    Attributes:
        row: The churn row as written.
        waiting: Time of the last commit before the rebalance, by topic and partition.
        sum_ms: Upper bounds of the partitions that have committed again, summed.
    """

    row: ChurnRow
    waiting: dict[str, dict[int, int]]
    sum_ms: int = 0


class ClassicState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The classic part of a group's state.

    Attributes:
        current: The newest decision; None before the first. It stays when the group goes on under another protocol.
        tombstoned: Log offset of the type-2 tombstone that ended the membership; None when it has not ended.
        waiting: Decisions that no round has judged yet, oldest first.
        verdict: Verdict on the newest judged decision; None before the first.
        balance: Imbalance of the newest decision, and the least that any assignment could have reached; both None when
            nothing is assigned or it cannot be read.
        transfer: Partitions that were given up and not yet given on; None when there are none.
        cost: The cost of the newest rebalance while commits that bound it are awaited.
        members_ended: The members' closing rows are written.
        handed_over: Newest decision of a consumer group whose end was the last record read, as a classic record would
            hold it: the classic group that follows goes on from it.
    """

    current: ClassicDecision | None = None
    tombstoned: int | None = None
    waiting: list[ClassicDecision] = []
    verdict: StandingVerdict | None = None
    balance: tuple[float | None, float | None] = (None, None)
    transfer: Transfer | None = None
    cost: OpenCost | None = None
    members_ended: bool = True
    handed_over: ClassicDecision | None = None

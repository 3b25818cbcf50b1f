"""The state of a modern group: consumer (KIP-848), share or streams."""

from __future__ import annotations

import msgspec

from streaming.groups.modern.group import ModernDecision, ModernGroup
from streaming.groups.modern.pauses import Pauses
from streaming.groups.verdicts import StandingVerdict


class ModernState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The modern part of a group's state; all defaults in a classic group.

    Attributes:
        key_type: Key type of the group's metadata record (3, 11 or 17); None for a classic group.
        ended: Log offset of the last tombstone of its metadata record; None if there was none.
        group: The group according to the log; None for a classic group.
        epoch: Epoch of its newest decision; None before the first.
        incarnation: Its incarnation; None before the first decision.
        upgraded: It has just been upgraded from a classic group and has no decision yet.
        waiting: Decisions that no round has judged yet, oldest first.
        unnamed: Decisions whose member rows wait for a round to name the topics, oldest first.
        shown: The decision whose member rows were last written, reduced to what closing rows need.
        verdict: Verdict on its newest judged decision; None before the first.
        balance: Imbalance of its newest judged decision, and the lowest possible; None before the first.
        pauses: Partitions of a consumer group between two owners; None before the first current assignment.
        leader_epoch: Leader epoch of its newest decision; -1 when not known.
        unreadable: Log offsets of records that cannot be decoded, by the row of the group's table that each sets
            (`row_of`): what the group is now is not known until each was set again, or removed.
    """

    key_type: int | None = None
    ended: int | None = None
    group: ModernGroup | None = None
    epoch: int | None = None
    incarnation: int | None = None
    upgraded: bool = False
    waiting: list[ModernDecision] = []
    unnamed: list[ModernDecision] = []
    shown: ModernDecision | None = None
    verdict: StandingVerdict | None = None
    balance: tuple[float | None, float | None] | None = None
    pauses: Pauses | None = None
    leader_epoch: int = -1
    unreadable: dict[str, int] = {}

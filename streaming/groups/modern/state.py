"""What is kept of a group that the broker assigns (KIP-848), and of share and streams groups."""

from __future__ import annotations

import msgspec

from streaming.groups.modern.consumer_group import ModernDecision, ModernGroup
from streaming.groups.modern.pauses import Pauses
from streaming.groups.verdict import StandingVerdict

__all__ = ["ModernState"]


class ModernState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The modern part of a group's state; as by default in a classic group.

    Attributes:
        key_type: Key type of the metadata record (3, 11 or 17) that the group lives by; None for a classic group.
        ended: Log offset of the last tombstone of its metadata record; None when there was none.
        group: What the log has told of the group; None for a classic group.
        epoch: Epoch of its newest decision; None before the first.
        incarnation: Its incarnation; None before the first decision.
        upgraded: It was a classic group until now: its first decision is not there yet.
        waiting: Decisions that no round has judged yet, oldest first.
        unnamed: Decisions whose members' rows wait for a round to name the topics, oldest first.
        shown: The decision whose members' rows were last written, as far as closing rows need it.
        verdict: Verdict on its newest judged decision; None before the first.
        balance: Imbalance of its newest judged decision, and the least; None before the first.
        pauses: Partitions of a consumer group between two owners; None before the first current assignment.
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

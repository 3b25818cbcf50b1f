"""The columns of `group_health` that a group's membership gives, whichever protocol it lives by."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.groups.verdict import StandingVerdict

__all__ = ["Membership"]


@dataclass(frozen=True, slots=True)
class Membership:
    """A group's membership at a round.

    Attributes:
        state: State by the log, for rounds in which the broker told none.
        verdict: Verdict on the newest decision.
        protocol_type: Protocol type; None when not known.
        strategy: Strategy, or server assignor; None where there is none, or it is not known.
        incarnation: Which group of this name; None where no decision was read.
        generation: Generation, or epoch; None likewise.
        decided: Record time of the newest decision, ms; None likewise.
        members: How many there are.
        assigned: How many partitions they have.
        balance: Imbalance, and the least that any assignment could have reached.
    """

    state: str
    verdict: StandingVerdict
    protocol_type: str | None = None
    strategy: str | None = None
    incarnation: int | None = None
    generation: int | None = None
    decided: int | None = None
    members: int = 0
    assigned: int = 0
    balance: tuple[float | None, float | None] = (None, None)

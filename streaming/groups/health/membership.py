"""The columns of `group_health` that come from a group's membership, for every protocol."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.groups.verdict import StandingVerdict

__all__ = ["Membership"]


@dataclass(frozen=True, slots=True)
class Membership:
    """A group's membership at a round.

    Attributes:
        state: State according to the log, used if the broker reported none at the round.
        verdict: Verdict on the newest decision.
        protocol_type: Protocol type; None when unknown.
        strategy: Strategy, or server assignor; None if there is none, or it is unknown.
        incarnation: The group's incarnation; None if no decision was read.
        generation: Generation, or epoch; None if no decision was read.
        decided: Record time of the newest decision, ms; None if no decision was read.
        members: Number of members.
        assigned: Number of assigned partitions.
        balance: Imbalance, and the lowest that any assignment could have; each None if unknown.
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

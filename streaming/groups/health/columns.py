"""What other rooms contribute to a row of `group_health`: findings at one round, and the columns about membership."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streaming.groups.verdicts import UNEXPLAINED, StandingVerdict

# A finding must fit on one line of the page and of an alert.
_NAMED = 3

# Topic names have up to 249 characters, and a few words may follow the name. Member ids have no limit.
_LONGEST = 300


class FindingAtRound(NamedTuple):
    """A finding at one round.

    Attributes:
        name: As in `group_health.findings`.
        since: Round or record time since which it holds, ms, as far as this round can tell.
        detail: One line of text for people.
        kept_as: Name under which its start is kept from round to round, where it is not the finding's own; None
            otherwise.
        shown: False while it is too young to be reported: only its start is kept.
    """

    name: str
    since: int
    detail: str
    kept_as: str | None = None
    shown: bool = True


def some(texts: Sequence[str]) -> str:
    """Join the first few and count the rest: "a, b, c and 2 more"."""
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(text[:_LONGEST] for text in texts[:_NAMED]) + more


def finding_of(name: str, what: str, where: list[tuple[int, str]]) -> list[FindingAtRound]:
    """One finding about several places, each with the time since which it holds there; none without a place."""
    text = f"{what}: {some([text for _, text in where])}"
    return [FindingAtRound(name, min(since for since, _ in where), text)] if where else []


def unexplained(verdict: StandingVerdict | None, now: int) -> list[FindingAtRound]:
    """The finding `unexplained_assignment` for the verdict on the newest judged decision."""
    if verdict is None or verdict.reason != UNEXPLAINED:
        return []
    return [FindingAtRound("unexplained_assignment", now, UNEXPLAINED)]


def found_before(found: list[FindingAtRound], before: Collection[str]) -> list[FindingAtRound]:
    """The findings that the round before had, too: while the offsets log is blocked there may be newer records."""
    return [one for one in found if (one.kept_as or one.name) in before]


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

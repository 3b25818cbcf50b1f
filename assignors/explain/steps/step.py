"""A step of an explanation: facts, a sentence made of them, and a check against the group.

A step never carries a sentence of its own: `text` builds it from the fields, and `enter` checks the same fields while
it replays the step. `text(partition)` says only what concerns one partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from assignors.assignment import PartitionId
from assignors.explain.ledger import Ledger, require
from assignors.explain.words import count, name, partition_names

# A step's own list of lines is cut here: more members than this are counted, not named.
MOST_LINES = 12


class Step(ABC):
    """One step of a decision.

    Attributes:
        kind: Its name in JSON.
    """

    kind: ClassVar[str]

    def text(self, partition: PartitionId | None = None) -> str:
        """The sentence; about one partition only, if one is given (which must be in `about`)."""
        return self._text(partition)

    def enter(self, ledger: Ledger) -> None:
        """Replay the step.

        Raises:
            WrongStepError: It contradicts the group or an earlier step.
        """
        self._enter(ledger)

    def about(self) -> Iterable[PartitionId]:
        """Partitions that the step names; none for a step about the whole group."""
        return self._about()

    @abstractmethod
    def _text(self, partition: PartitionId | None) -> str: ...

    @abstractmethod
    def _enter(self, ledger: Ledger) -> None: ...

    def _about(self) -> Iterable[PartitionId]:
        return ()

    def facts(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]  # each is a dataclass


def lines(by_member: Mapping[str, Sequence[PartitionId]]) -> str:
    """Members with their partitions, in order; beyond `MOST_LINES` members only counted."""
    shown = [f"{name(member)}: {partition_names(mine)}" for member, mine in list(by_member.items())[:MOST_LINES]]
    left = len(by_member) - MOST_LINES
    return "; ".join(shown) if left <= 0 else f"{'; '.join(shown)}; and {count(left, 'more member')}"


@dataclass(frozen=True, slots=True)
class Result(Step):
    """How many partitions each member has in the end.

    Attributes:
        sizes: By member id.
        assigned: All of them together.
    """

    kind = "result"
    sizes: Mapping[str, int]
    assigned: int

    def _text(self, partition: PartitionId | None) -> str:
        del partition
        if not self.sizes:
            return "The group has no members, so nothing is assigned."
        listed = sorted(self.sizes.items(), key=lambda pair: (-pair[1], pair[0]))
        shown = ", ".join(f"{name(member)} {size:,}" for member, size in listed[:MOST_LINES])
        left = len(listed) - MOST_LINES
        more = ""
        if left > 0:
            least, most = listed[-1][1], listed[MOST_LINES][1]
            sizes = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            more = f" and {count(left, 'more member')} with {sizes}"
        verb = "is" if self.assigned == 1 else "are"
        return f"In the end {count(self.assigned, 'partition')} {verb} assigned: {shown}{more}."

    def _enter(self, ledger: Ledger) -> None:
        require({m: ledger.size(m) for m in ledger.owned} == dict(self.sizes), "members have other numbers")
        require(sum(self.sizes.values()) == self.assigned, "the sum is another")

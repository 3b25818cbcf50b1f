"""What the members of the demo's groups did and saw, read back from the journal that they wrote."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["UNCOUNTED", "Generation", "Place", "Played"]

Place = tuple[str, str, int]
"""Group, topic, partition."""

UNCOUNTED = frozenset({"orders-java"})
"""Groups whose members commit by themselves: nobody can say how often (`streaming.demo.java_member`)."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What one rebalance listener was told once.

    Attributes:
        group: Its group.
        member: Member id.
        generation: Generation.
        assigned: Topic and partition of what it was given; with a cooperative strategy what was added.
    """

    group: str
    member: str
    generation: int
    assigned: frozenset[tuple[str, int]]


class Played:
    """A journal, read to its end."""

    def __init__(self, path: Path) -> None:
        self._lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def lines(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self._lines if line["what"] == what]

    @property
    def commits(self) -> Counter[Place]:
        """Commits that were acknowledged."""
        counted: Counter[Place] = Counter()
        for line in self.lines("commits"):
            counted.update(_places(line["group"], line["counts"]))
        return counted

    @property
    def uncertain(self) -> Counter[Place]:
        """Commits whose answer never came: each was written, or was not."""
        return Counter(
            place for line in self.lines("uncertain") for place in _places(line["group"], line["partitions"])
        )

    @property
    def generations(self) -> list[Generation]:
        """What the listeners of all members with a Python client were told."""
        return [
            Generation(
                line["group"],
                line["member"],
                line["generation"],
                frozenset((topic, p) for topic, partitions in line["assigned"].items() for p in partitions),
            )
            for line in self.lines("generation")
        ]

    @property
    def clients_of(self) -> dict[str, set[str]]:
        """Client ids by group, of the members that were ever given something."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for line in self.lines("generation"):
            found[line["group"]].add(line["client"])
        return dict(found)


def _places(group: str, by_topic: dict[str, dict[str, int]]) -> dict[Place, int]:
    return {(group, topic, int(p)): value for topic, of in by_topic.items() for p, value in of.items()}

"""The actions and observations of the demo's members, read from their journal."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streaming.demo.java_member import SINK_GROUP

Place = tuple[str, str, int]
"""Group, topic, partition."""

OTHER_KINDS = frozenset({"payouts-share", "words-streams", "files-connect"})
"""Groups whose members have no rebalance listener, and which tools for consumer groups do not describe: Kafka's tools
for share and streams groups, and Connect's REST API, are their witnesses (`tests/real_groups`)."""

UNCOUNTED = OTHER_KINDS | {"orders-java", SINK_GROUP}
"""Groups whose members commit by themselves: the number of their commits is unknown (`streaming.demo.java_member`)."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One call of a rebalance listener.

    Attributes:
        group: Its group.
        member: Member id.
        generation: Generation.
        assigned: Topic and partition of its assignment; with a cooperative strategy only added ones.
    """

    group: str
    member: str
    generation: int
    assigned: frozenset[tuple[str, int]]


class Played:
    """A complete journal."""

    def __init__(self, path: Path) -> None:
        self._lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def lines(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self._lines if line["what"] == what]

    @property
    def commits(self) -> Counter[Place]:
        """Acknowledged commits."""
        counted: Counter[Place] = Counter()
        for line in self.lines("commits"):
            counted.update(_places(line["group"], line["counts"]))
        return counted

    @property
    def generations(self) -> list[Generation]:
        """Calls of the listeners of all members with a Python client."""
        return [
            Generation(
                line["group"],
                line["member"],
                line["generation"],
                frozenset((topic, p) for topic, partitions in line["assigned"].items() for p in partitions),
            )
            for line in self.lines("generation")
        ]


def _places(group: str, by_topic: dict[str, dict[str, int]]) -> dict[Place, int]:
    return {(group, topic, int(p)): value for topic, of in by_topic.items() for p, value in of.items()}

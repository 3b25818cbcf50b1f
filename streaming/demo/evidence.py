"""What a demo leaves behind to be checked: the tables, the journal, and how late everything was.

Some checks rest on timeouts: members that send no heartbeat in time expire, and those that do not commit for ten rounds
count as stopped. On a machine that is too slow that happens to members that a story meant to be well, and the tables
that show it are right. Such a check yields a `Timed` sentence, which then counts as not judged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from streaming.demo.frame import INTERVAL_MS
from streaming.tables import LakeReader

_LATE_S: Final = 2.0
"""A demo that stood still for longer is late. The shortest session timeout of a member is 6 s, with a heartbeat every
1.5 s, and only some moments are measured; a start of Spark on two idle cores holds up others for less than a second."""


class Timed(str):
    """A sentence about something that is missing or wrong, but that a slow machine can be the cause of."""

    __slots__ = ()


class Evidence:
    """The tables and the journal, with the queries that several checks share."""

    def __init__(self, reader: LakeReader, journal: Path) -> None:
        self.reader = reader
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]

    def rows(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        """Run a query."""
        return self.reader.rows(sql, list(parameters))

    def one(self, sql: str, *parameters: object) -> Any:
        """The only value of a query."""
        return next(iter(self.rows(sql, *parameters)[0].values()))

    def noted(self, what: str) -> Iterator[dict[str, Any]]:
        """Lines of the journal of one kind."""
        return (line for line in self.lines if line["what"] == what)

    @property
    def lateness(self) -> str | None:
        """A sentence where the machine was too slow for some checks."""
        quiet = next(self.noted("quiet"))
        sql = (
            "SELECT coalesce(max(step), 0) AS late FROM (SELECT (epoch_ms(round_time) - epoch_ms(lag(round_time) "
            "OVER (ORDER BY round)) - ?) / 1000 AS step, round_time FROM rounds) WHERE epoch_ms(round_time) < ?"
        )
        return lateness(quiet["late_s"], float(self.one(sql, INTERVAL_MS, quiet["at_ms"])))

    def verdicts(self, group: str) -> Counter[str]:
        """Verdicts on all decisions of a group that had members."""
        sql = "SELECT verdict FROM drift WHERE group_id = ? AND verdict <> 'not_applicable'"
        return Counter(row["verdict"] for row in self.rows(sql, group))

    def found(self, group: str, finding: str) -> bool:
        """Whether a group has ever had a finding."""
        sql = f"SELECT count(*) FROM group_health WHERE group_id = ? AND {has(finding)}"  # noqa: S608 - our own names
        return bool(self.one(sql, group))

    def now(self, group: str) -> dict[str, Any] | None:
        """A group's newest health; None when it has none or is closed."""
        found = self.rows("SELECT * FROM group_health_current WHERE group_id = ?", group)
        return found[0] if found else None


def has(finding: str) -> str:
    """SQL: whether a row of health has a finding."""
    return f"list_contains(list_transform(findings, lambda f: f.finding), '{finding}')"


def lateness(ticks_s: float, rounds_s: float) -> str | None:
    """A sentence where the machine was too slow for checks that rest on timeouts; None where it was not.

    Args:
        ticks_s: The longest delay of a step of the traffic, which the members share a process with.
        rounds_s: The longest delay of a round after the one before, beyond the interval.
    """
    if max(ticks_s, rounds_s) <= _LATE_S:
        return None
    return (
        f"The machine was too slow for the stories: the traffic stood still for {ticks_s:.1f} s, and a round came "
        f"{rounds_s:.1f} s late, where {_LATE_S:.0f} s are allowed. Members expire by that."
    )


def judged(found: Sequence[str], late: str | None) -> tuple[list[str], list[str]]:
    """Sentences that count, and those that nobody can judge because the machine was too slow."""
    missing = [sentence for sentence in found if late is None or not isinstance(sentence, Timed)]
    unjudged = [sentence for sentence in found if sentence not in missing]
    return missing, [*unjudged, late] if late is not None and unjudged else unjudged

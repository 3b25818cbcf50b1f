"""The tables and the journal of one demo, with the queries that several checks share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streaming.tables import LakeReader

__all__ = ["Evidence"]


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

    def verdicts(self, group: str) -> Counter[str]:
        """Verdicts on all decisions of a group that had members."""
        sql = "SELECT verdict FROM drift WHERE group_id = ? AND verdict <> 'not_applicable'"
        return Counter(row["verdict"] for row in self.rows(sql, group))

    def now(self, group: str) -> dict[str, Any] | None:
        """A group's newest health; None when it has none or is closed."""
        found = self.rows("SELECT * FROM group_health_current WHERE group_id = ?", group)
        return found[0] if found else None

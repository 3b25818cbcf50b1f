"""What the newest row of health says of a group."""

from __future__ import annotations

from tests.groups.build import SECOND, START, Life


def found(life: Life) -> list[tuple[str, int]]:
    """Findings of the newest round, each with its beginning in s after START."""
    return [(f.finding, (f.since - START) // SECOND) for f in life.rows.group_health[-1].findings]


def detail(life: Life) -> str:
    """The text of the only one."""
    (finding,) = life.rows.group_health[-1].findings
    return finding.detail

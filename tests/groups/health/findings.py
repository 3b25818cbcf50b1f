"""What the newest row of health says of a group."""

from __future__ import annotations

from streaming.groups.rows import Finding
from tests.groups.build import SECOND, START, Life


def found(life: Life) -> list[tuple[str, int]]:
    """Findings of the newest round about the present, each with its beginning in s after START.

    (The assignments of these tests are made up, so that many are unexplained.)
    """
    return [(f.finding, (f.since - START) // SECOND) for f in _of_the_present(life)]


def detail(life: Life) -> str:
    """The text of the only one."""
    (finding,) = _of_the_present(life)
    return finding.detail


def _of_the_present(life: Life) -> list[Finding]:
    return [f for f in life.rows.group_health[-1].findings if f.finding != "unexplained_assignment"]

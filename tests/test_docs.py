"""The pages speak of what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streaming.groups import verdict
from streaming.groups.lag import partitions as lag
from streaming.tables import table_named

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])


def words_after_colon(table: str, column: str) -> list[str]:
    """The words that a column may hold, as its comment lists them."""
    comment = next(c.comment for c in table_named(table).columns if c.name == column)
    return re.findall(r"[a-z_]{2,}", comment.split(": ")[-1])


@pytest.mark.parametrize(
    "word",
    [
        *(verdict.IDENTICAL, verdict.DRIFTED, verdict.UNVERIFIED, verdict.NOT_APPLICABLE, "pending"),
        *words_after_colon("drift", "drifted_partitions"),
        *words_after_colon("group_health", "findings"),
        *lag.STATUSES,
    ],
)
def test_the_page_on_verdicts_explains_every_word_in_a_line_of_a_table(word: str) -> None:
    page = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert f"\n| `{word}` | " in page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert broken == []

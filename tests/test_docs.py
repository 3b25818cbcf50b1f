"""The pages agree with the code: words, links, commands, and the README's own examples."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from streaming.cli import app
from streaming.groups import verdict
from streaming.groups.lag import partitions as lag
from streaming.tables import LakeReader, table_named
from tests.e2e.old_lake import unpack_lake

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")])
_ELSEWHERE = {"streaming/conf/", "streaming/conf"}  # in an installed wheel
README = (ROOT / "README.md").read_text(encoding="utf-8")


def words_after_colon(table: str, column: str) -> list[str]:
    """The allowed words of a column, from its comment."""
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
    page = (DOCS / "verdicts.md").read_text(encoding="utf-8")
    assert f"\n| `{word}` | " in page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_within_the_project_lead_to_a_file_and_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8"))
    broken = []
    for target, anchor in links:
        file = page.parent / target if target else page
        if "://" not in target and not (file.exists() and (not anchor or anchor in anchors(file))):
            broken.append(f"{target}#{anchor}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings on GitHub."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CHANGELOG.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_paths_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:assignors|conf|dashboards|docs|streaming|tests)/[\w./-]+)`", page.read_text("utf-8"))
    assert [path for path in named if path not in _ELSEWHERE and not (ROOT / path).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in DOCS.glob("*.md")} - {"README.md"}
    assert [page for page in sorted(pages) if f"]({page})" not in index] == []


def commands() -> Iterator[tuple[str, str]]:
    """Every call of `evenkeel` and `make` in the pages' code blocks, with its page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        fenced = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
        indented = "\n".join(re.findall(r"^(?: {4}| {6})(\S.*)$", text, re.MULTILINE))
        for line in f"{fenced}\n{indented}".splitlines():
            command = line.split(" # ")[0].strip()
            if re.match(r"(\.venv/bin/)?evenkeel |make ", command):
                yield page.name, command


@pytest.mark.parametrize(("page", "command"), sorted(set(commands())))
def test_a_command_of_a_page_is_one_that_the_program_knows(page: str, command: str) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        given = {argument.split("=")[0] for argument in arguments if "=" in argument}
        assert [name for name in sorted(given) if f"$({name})" not in makefile] == []
        subprocess.run(["make", "-n", *arguments], cwd=ROOT, check=True, capture_output=True)
    else:
        evenkeel: Any = typer.main.get_command(app)
        if arguments[0].startswith("--"):
            assert arguments[0] in {option for parameter in evenkeel.params for option in parameter.opts}
        else:
            name, subcommand, rest = evenkeel.resolve_command(evenkeel.context_class(evenkeel), arguments)
            # Parses the arguments and refuses unknown options, without running anything.
            subcommand.make_context(name, rest)


def test_the_readme_fits_on_a_screen_or_two() -> None:
    assert len(README.splitlines()) < 100


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_every_block_of_the_readme_is_of_a_kind_that_is_tried_here() -> None:
    assert set(re.findall(r"^```(\w+)$", README, re.MULTILINE)) == {"sh", "sql", "python"}


@pytest.fixture
def recorded_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recorded lake of the end-to-end tests, as `lake` in the working folder, where `evenkeel up` puts it."""
    unpack_lake(tmp_path / "lake")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "lake"


def test_the_readmes_query_gives_the_row_that_stands_below_it(recorded_lake: Path) -> None:
    [query] = readme_blocks("sql")
    below = README.split(query)[1].split("```\n\n")[1].split("\n\n")[0]
    names, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in below.splitlines()]
    found = list(LakeReader(recorded_lake).rows(query))
    assert [{name: str(value) for name, value in row.items()} for row in found] == [
        dict(zip(names, row, strict=True)) for row in rows
    ]


@pytest.mark.usefixtures("recorded_lake")
@pytest.mark.parametrize("program", readme_blocks("python"))
def test_the_readmes_python_prints_rows(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(program, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 6
    assert all("'verdict'" in line for line in printed)

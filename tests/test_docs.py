"""The pages agree with the code: words, links, commands, and the README's own examples."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer

from streaming.advice.rows import KINDS
from streaming.cli import app
from streaming.groups import verdicts
from streaming.groups.causes import CAUSES
from streaming.groups.lag import partitions as lag
from streaming.tables import TABLES, DeltaLake, LakeReader, table_named
from tests.e2e.compacting import RECORDS, ROUNDS, CompactedTopics, job_on
from tests.groups.build import Life, even, make_member, make_observation, make_record, make_topic

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS.glob("*.md")]
)
_ELSEWHERE = {"streaming/conf/", "streaming/conf"}  # in an installed wheel
README = (ROOT / "README.md").read_text(encoding="utf-8")


def words_after_colon(table: str, column: str) -> list[str]:
    """The allowed words of a column, from its comment."""
    comment = next(c.comment for c in table_named(table).columns if c.name == column)
    return re.findall(r"[a-z_]{2,}", comment.split(": ")[-1])


@pytest.mark.parametrize(
    "word",
    [
        *(verdicts.IDENTICAL, verdicts.DRIFTED, verdicts.UNVERIFIED, verdicts.NOT_APPLICABLE, "pending"),
        *words_after_colon("drift", "drifted_partitions"),
        *words_after_colon("group_health", "findings"),
        *lag.STATUSES,
    ],
)
def test_the_pages_on_verdicts_and_rocketmq_explain_every_word_in_a_line_of_a_table(word: str) -> None:
    pages = [(DOCS / page).read_text(encoding="utf-8") for page in ("verdicts.md", "rocketmq.md")]
    assert any(f"\n| `{word}` | " in page for page in pages)


def test_the_comment_of_findings_names_every_finding_that_the_core_makes() -> None:
    made = {
        call.args[0].value
        for path in (ROOT / "streaming" / "groups").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in {"FindingAtRound", "finding_of"}
        and isinstance(call.args[0], ast.Constant)
    }
    assert len(made) >= 10
    assert made - set(words_after_colon("group_health", "findings")) == set()


@pytest.mark.parametrize(
    ("page", "table", "column", "word"),
    [
        *(("advice", "advice", "kind", word) for word in KINDS),
        *(("causes", "rebalance_churn", "causes", word) for word in CAUSES),
    ],
)
def test_each_kind_of_advice_and_each_cause_has_a_line_in_its_page_and_a_word_in_its_column(
    page: str, table: str, column: str, word: str
) -> None:
    assert f"\n| `{word}` | " in (DOCS / f"{page}.md").read_text(encoding="utf-8")
    comment = next(c.comment for c in table_named(table).columns if c.name == column)
    assert word in re.findall(r"[a-z_0-9]+", comment)


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
            command = re.split(" [#>] ", line)[0].strip()
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
    """What the job makes of half of a recorded run, as `lake` in the working folder, where `evenkeel up` puts it."""
    job = job_on(CompactedTopics(RECORDS), ROUNDS)
    job.run(ROUNDS // 2)
    lake = DeltaLake(str(tmp_path / "lake"))
    lake.create()
    for table in TABLES:
        if rows := msgspec.msgpack.decode(msgspec.msgpack.encode(getattr(job.rows, table.name))):
            lake.append(table.name, rows, "query", 0)
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


def test_the_page_on_verdicts_recomputes_one_from_its_inputs(tmp_path: Path) -> None:
    life = Life()
    piled_up = make_member("b", ("orders",)), make_member("a", ("orders",), {"orders": range(3)})
    life.take(
        make_record(5, even("orders", 3, "a", "b")),
        make_record(10, piled_up, generation=2),
        make_observation(20, make_topic("orders", 3)),
    )
    lake = DeltaLake(str(tmp_path / "lake"))
    lake.create()
    lake.append("drift", msgspec.msgpack.decode(msgspec.msgpack.encode(life.rows.drift)), "query", 1)
    passage = (DOCS / "verdicts.md").read_text(encoding="utf-8").split("### Recompute a verdict")[1]
    [command] = re.findall(r"^```sh\n(.*?)^```", passage.split("\n### ")[0], re.DOTALL | re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True, capture_output=True
    )
    assert [(row.verdict, row.decision) for row in life.rows.drift] == [("identical", 5), ("drifted", 10)]
    assert json.loads(done.stdout) == {"assignment": {"b": [["orders", 2]], "a": [["orders", 0], ["orders", 1]]}}

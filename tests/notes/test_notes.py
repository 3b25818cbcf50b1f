"""Mutes and marks: the commands, what they refuse, and the tables under concurrent writers."""

from __future__ import annotations

import re
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from streaming.cli import app
from streaming.config import Owner
from streaming.exceptions import SetupError
from streaming.notes import KnownNames, Mark, Mute, NoteBook, mark, mute, print_mutes, unmute, write_note
from streaming.tables import LakeReader, table_named
from streaming.times import epoch_ms
from tests.empty_lake import empty_lake
from tests.examples import ends

KNOWN = KnownNames(("drift", "lag"), (Owner(team="payments", groups=("/^pay/",)), Owner(team="lag", groups=("x",))))


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """A lake with the groups pay-1 and drift."""
    root = str(tmp_path / "lake")
    made = empty_lake(root)
    columns = table_named("group_health").columns
    rows = [
        {
            "cluster": "c",
            "group_id": group,
            "round": 1,
            "round_time": 0,
            "event_date": 0,
            "ended": False,
            "findings": [],
        }
        for group in ("pay-1", "drift")
    ]
    made.append("group_health", [[row.get(column.name) for column in columns] for row in rows], "made", 0)
    return root


def marks(lake: str) -> list[dict[str, Any]]:
    """Marks in the table, the oldest first."""
    return LakeReader(lake).rows("SELECT text, group_id, mark_time FROM marks ORDER BY mark_time, text")


@pytest.mark.parametrize(("name", "kind"), [("pay-1", "group"), ("/^pay/", "group"), ("payments", "owner")])
def test_what_a_name_means_is_found_out(lake: str, name: str, kind: str) -> None:
    said = mute(lake, "c", name, "2h", "a deploy", KNOWN)
    assert said.startswith(f"Muted {kind} {name} on c until ")
    (found,) = NoteBook(lake, "c").mutes()
    assert (found.kind, found.name, found.reason, found.until_time - found.from_time) == (
        kind,
        name,
        "a deploy",
        7_200_000,
    )
    assert NoteBook(lake, "other").mutes() == ()


@pytest.mark.parametrize(
    ("name", "span", "reason", "kind", "said"),
    [
        ("drift", "2h", "x", None, "drift is the name of several: add --kind rule or --kind group."),
        ("lag", "2h", "x", None, "lag is the name of several: add --kind rule or --kind owner."),
        ("pay-2", "2h", "x", None, r"There is no rule, team or living group pay-2 on c\. For a group"),
        ("/(/", "2h", "x", None, r"The regular expression /\(/ does not compile\."),
        ("pay-1", "soon", "x", None, "--for is wrong: 'soon' is not a duration"),
        ("pay-1", "400d", "x", None, "A mute lasts a year at most"),
        ("pay-1", "2h", "  ", None, "Say why with --reason"),
    ],
)
def test_what_cannot_be_muted_is_one_sentence(
    lake: str, name: str, span: str, reason: str, kind: str | None, said: str
) -> None:
    with pytest.raises(SetupError, match=said):
        mute(lake, "c", name, span, reason, KNOWN, kind)
    assert NoteBook(lake, "c").mutes() == ()


def test_a_mute_of_a_group_that_is_yet_to_come_says_its_kind(lake: str) -> None:
    assert mute(lake, "c", "tomorrow", "1d", "x", KNOWN, "group").startswith("Muted group tomorrow")


def test_a_mute_that_would_be_over_already_is_refused_unless_it_begins_again(lake: str) -> None:
    with pytest.raises(SetupError, match="would be over already: begin it later"):
        mute(lake, "c", "pay-1", "1h", "x", KNOWN, begin="2h")
    assert NoteBook(lake, "c").mutes() == ()
    assert mute(lake, "c", "pay-1", "1h", "x", KNOWN, begin="2h", every="day").startswith("Muted group pay-1")


def test_mutes_are_listed_ended_by_name_or_id_and_then_gone(lake: str) -> None:
    mute(lake, "c", "pay-1", "2h", "[bold]a\x1b[31m deploy", KNOWN)
    mute(lake, "c", "payments", "1h", "x", KNOWN)
    out = StringIO()
    print_mutes(lake, "c", Console(file=out, width=200))
    assert "[bold]a\\x1b[31m deploy" in out.getvalue()
    (first,) = [one for one in NoteBook(lake, "c").mutes() if one.name == "payments"]
    assert out.getvalue().index(first.mute_id) < out.getvalue().index("pay-1"), "the first to end comes first"
    assert unmute(lake, "c", "pay-1") == "Ended: group pay-1. What still fires is delivered now."
    assert unmute(lake, "c", first.mute_id).startswith("Ended: owner payments.")
    with pytest.raises(SetupError, match="There is no mute of pay-1 on c"):
        unmute(lake, "c", "pay-1")
    assert LakeReader(lake).count("mutes_current") == 0


def test_a_mark_has_its_time_and_its_group(lake: str) -> None:
    mark(lake, "c", " deploy of\npay ", "pay-1", "2026-11-25T10:00+01:00")
    mark(lake, "c", "rack 2 moved")
    first, second = marks(lake)
    time_ms = 1_764_061_200_000 + 31_536_000_000
    assert (first["text"], first["group_id"], epoch_ms(first["mark_time"])) == ("deploy of\\npay", "pay-1", time_ms)
    assert second["group_id"] is None
    for text, at in (("", None), ("x" * 201, None), ("x", "yesterday"), ("x", "2026-11-25T10:00")):
        with pytest.raises(SetupError):
            mark(lake, "c", text, None, at)


@pytest.mark.parametrize("at", ["0001-01-01T00:00+14:00", "1969-12-31T23:59Z", "9999-12-31T23:59-14:00"])
def test_a_moment_that_no_table_can_hold_is_one_sentence(lake: str, at: str) -> None:
    said = f"--at {at} lies outside of the years 1970 to 9999: write it like"
    with pytest.raises(SetupError, match=re.escape(said)):
        mark(lake, "c", "deploy", None, at)
    assert marks(lake) == []


@pytest.mark.parametrize(("at", "ms"), [("1970-01-01T00:00Z", 0), ("9999-12-31T23:59:59Z", 253_402_300_799_000)])
def test_the_first_and_the_last_moment_can_be_marked(lake: str, at: str, ms: int) -> None:
    mark(lake, "c", "deploy", None, at)
    assert [epoch_ms(one["mark_time"]) for one in marks(lake)] == [ms]


def test_a_folder_that_is_no_lake_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    typo = str(tmp_path / "typo")
    for attempt in (
        lambda: mark(typo, "c", "deploy"),
        lambda: mute(typo, "c", "pay-1", "2h", "a deploy", KNOWN),
        lambda: unmute(typo, "c", "pay-1"),
        lambda: print_mutes(typo, "c", Console(file=StringIO())),
    ):
        with pytest.raises(SetupError, match="There is no lake in"):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_a_lake_in_which_nobody_has_muted_anything_lists_no_mutes(tmp_path: Path) -> None:
    empty_lake(tmp_path, [table_named("rounds")])
    out = StringIO()
    print_mutes(str(tmp_path), "c", Console(file=out))
    assert out.getvalue() == "No mute holds on c.\n"


@pytest.mark.nightly
def test_many_write_at_once_and_none_is_lost(lake: str) -> None:
    def write(number: int) -> None:
        for n in range(5):
            write_note(lake, Mark(f"{number}-{n}", "c", "deploy", None, "api", n), n)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(marks(lake)) == 20


def test_a_book_sees_what_others_write_and_reads_again_only_then(lake: str) -> None:
    book = NoteBook(lake, "c")
    assert book.mutes() == ()
    known = set()
    for name in ("one", "two"):
        write_note(lake, Mute(name, "c", "group", "pay-1", "x", "ann", 0, 1), 0)
        known.add(name)
        assert {one.mute_id for one in book.mutes()} == known


@pytest.mark.parametrize(
    ("arguments", "told"),
    ends(
        [
            (["mute", "billing", "--for", "1h", "--reason", "r"], "Muted group billing on b until"),
            (["mark", "deploy", "--group", "billing"], "Marked on b at"),
            (
                ["mute", "orders", "--for", "1h", "--reason", "r"],
                "choose one with --cluster or EVENKEEL_CLUSTER, of a, b",
            ),
            (["mute", "orders", "--for", "1h", "--reason", "r", "--cluster", "a"], "Muted group orders on a until"),
            (
                ["mute", "critical", "--for", "1h", "--reason", "r"],
                "choose one with --cluster or EVENKEEL_CLUSTER, of a, b",
            ),
            (["mutes"], "a:\nNo mute holds on a.\nb:\nNo mute holds on b.\n"),
        ]
    ),
)
def test_of_several_clusters_the_only_one_that_has_the_group_is_meant_and_otherwise_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    lake = empty_lake(tmp_path / "lake")
    for number, (cluster, group) in enumerate([("a", "orders"), ("b", "orders"), ("b", "billing")]):
        row = {"cluster": cluster, "group_id": group, "round": 1, "ended": False, "event_date": 0}
        table = table_named("group_health")
        lake.append("group_health", [[row.get(column.name) for column in table.columns]], "made", number)
    file = tmp_path / "evenkeel.toml"
    file.write_text(f'lake = "{lake.root}"\n[[clusters]]\nname = "a"\n[[clusters]]\nname = "b"\n')
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    done = CliRunner().invoke(app, arguments)
    assert told in (done.output or str(done.exception)), (done.output, done.exception)

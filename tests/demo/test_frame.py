"""What both demos have: the look at the journal, and a port for the page."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from streaming.config import ServeSettings
from streaming.demo.frame import _page_port, _says_quiet
from streaming.demo.ports import check_port_is_free, free_port


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal that has grown for long, and that is never read as a whole."""
    journal = tmp_path / "journal.jsonl"
    journal.write_text((json.dumps({"what": "commits", "group": "g" * 200}) + "\n") * 2_000, encoding="utf-8")

    def refuse(path: Path) -> bytes:
        message = f"all of {path} is read"
        raise AssertionError(message)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    return journal


def _add(journal: Path, *lines: str) -> None:
    with journal.open("a", encoding="utf-8") as file:
        file.write("".join(lines))


def test_the_end_of_a_long_journal_says_that_the_stage_is_quiet(journal: Path) -> None:
    assert not _says_quiet(journal)

    _add(journal, '{"what": "quiet", "unsettled": 0}\n', '{"what": "end"}\n')
    assert _says_quiet(journal)


def test_a_line_that_is_still_being_written_says_nothing_yet(journal: Path) -> None:
    _add(journal, '{"what": "qui')
    assert not _says_quiet(journal)

    _add(journal, 'et", "unsettled": 0}\n')
    assert _says_quiet(journal)


def test_a_short_journal_is_read_from_its_beginning(tmp_path: Path) -> None:
    journal = tmp_path / "short.jsonl"
    journal.write_text('{"what": "quiet"}\n', encoding="utf-8")
    assert _says_quiet(journal)


def test_the_page_gets_another_port_where_its_own_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    own = free_port()
    monkeypatch.setattr("streaming.demo.frame.ServeSettings", lambda: ServeSettings(listen=f"127.0.0.1:{own}"))
    assert _page_port() == own
    with socket.create_server(("127.0.0.1", own)):
        other = _page_port()
    assert other != own
    check_port_is_free(other)

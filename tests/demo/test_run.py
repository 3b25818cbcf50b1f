"""The course of a demo: whose settings it uses, when the stage is quiet, and the port of its page."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from streaming.config import KafkaSettings, ServeSettings, environment_of, load_settings
from streaming.demo.ports import check_port_is_free, free_port
from streaming.demo.run import _page_port, _says_quiet, _settings


def test_the_programs_of_the_demo_write_nothing_to_the_user_s_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenkeel.toml"
    file.write_text('[bus]\nbootstrap_servers = "bus:9092"\nsecurity_protocol = "SASL_SSL"\n', encoding="utf-8")
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    assert load_settings().bus is not None
    for name, value in environment_of(_settings("127.0.0.1:1", tmp_path / "lake")).items():
        monkeypatch.setenv(name, value)
    assert load_settings().bus == load_settings().kafka == KafkaSettings(bootstrap_servers="127.0.0.1:1")


def test_a_whole_line_at_the_end_of_the_journal_says_that_the_stage_is_quiet(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    long = (json.dumps({"what": "commits", "group": "g" * 200}) + "\n") * 2_000
    for text, is_quiet in (
        (long, False),
        (long + '{"what": "qui', False),
        (long + '{"what": "quiet", "unsettled": 0}\n{"what": "end"}\n', True),
        ('{"what": "quiet"}\n', True),
    ):
        journal.write_text(text, encoding="utf-8")
        assert _says_quiet(journal) is is_quiet


def test_the_page_gets_another_port_where_its_own_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    own = free_port()
    monkeypatch.setattr("streaming.demo.run.ServeSettings", lambda: ServeSettings(listen=f"127.0.0.1:{own}"))
    assert _page_port() == own
    with socket.create_server(("127.0.0.1", own)):
        other = _page_port()
    assert other != own
    check_port_is_free(other)

"""Strategies and declared clients, read again while the probe runs; a file that is wrong changes nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from streaming.config import load_settings
from streaming.probe.rounds_probe import GroupSettings
from streaming.records import Configured

RANGE = '[[strategies]]\ngroups = "orders"\nstrategy = "range"\n'
STICKY = '[[strategies]]\ngroups = "/^ord/"\nstrategy = "sticky"\nclients = ["java"]\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "evenkeel.toml"
    path.write_text(RANGE)
    monkeypatch.setenv("EVENKEEL_CONFIG", str(path))
    return path


def says(told: Configured | None) -> object:
    return None if told is None else told.says()


def test_a_changed_file_counts_from_the_next_round_on(file: Path) -> None:
    settings = GroupSettings(load_settings())
    assert says(settings.of("orders")) == ("range", ())
    assert settings.of("others") is None
    before = settings.of("orders")

    file.write_text(STICKY)
    assert settings.of("orders") == before
    settings.refresh()

    assert says(settings.of("orders")) == ("sticky", ("java",))
    after = settings.of("orders")
    assert before.version != after.version


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("[[strategies]\n", "not valid TOML"),
        ('[[strategies]]\ngroups = "/(/"\nstrategy = "range"\n', "does not compile"),
        ('[[strategies]]\ngroups = "a"\nclients = ["jawa"]\n', "jawa"),
        (None, "the settings file is gone"),
    ],
)
def test_a_wrong_file_is_refused_with_one_sentence_and_the_old_one_stays(
    file: Path, wrong: str | None, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = GroupSettings(load_settings())
    before = settings.of("orders")
    if wrong is None:
        file.unlink()
    else:
        file.write_text(wrong)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            settings.refresh()
    (message,) = caplog.messages
    assert told.lower() in message.lower()
    assert "\n" not in message
    assert settings.of("orders") == before

    file.write_text(STICKY)
    settings.refresh()
    assert says(settings.of("orders")) == ("sticky", ("java",))


def test_two_probes_that_read_the_same_rules_tell_the_same_version(file: Path) -> None:
    one, other = GroupSettings(load_settings()), GroupSettings(load_settings())
    assert one.of("orders") == other.of("orders")
    file.write_text(f"# A comment changes nothing.\n{RANGE}")
    other.refresh()
    assert one.of("orders") == other.of("orders")

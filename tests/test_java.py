"""The Java for Spark and the broker is found, or one sentence says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.exceptions import SetupError
from streaming.java import find_java, java_release


def _java_home(folder: Path, says: str, *, exit_code: int = 0) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit {exit_code}\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("says", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "21" 2023-09-19 LTS', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=y\nopenjdk version "26.0.1" 2026-07-21', 26),
    ],
)
def test_a_java_of_17_or_newer_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, release: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java_home(tmp_path, says)))
    assert find_java() == tmp_path / "bin" / "java"
    assert java_release(find_java()) == release


@pytest.mark.parametrize("says", ['java version "1.8.0_392"', 'openjdk version "11.0.2" 2019-01-15'])
def test_an_older_java_is_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java_home(tmp_path, says)))
    with pytest.raises(SetupError, match=r"is Java (8|11), and Spark and Kafka need 17 or newer: install one"):
        find_java()


def test_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"JAVA_HOME is {tmp_path}, but there is no program"):
        find_java()


def test_no_java_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="No Java was found: install a JDK 17 or newer"):
        find_java()


def test_the_stub_of_macos_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "The operation couldn't be completed. Unable to locate a Java Runtime."
    monkeypatch.setenv("JAVA_HOME", str(_java_home(tmp_path, said, exit_code=1)))
    with pytest.raises(SetupError, match="is not a working Java"):
        find_java()

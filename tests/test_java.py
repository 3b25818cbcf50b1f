"""The Java for Spark and the broker is found, or one sentence says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.exceptions import SetupError
from streaming.java import find_java, java_release
from tests.java_tools import GroupOffset, parse_group_offsets


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


# The output of Kafka's own programs is parsed correctly, whatever a group is called.


_PRINTED = Path(__file__).with_name("data") / "describe_all_groups.txt"
"""Output of `kafka-consumer-groups --describe --all-groups` of Kafka 4.3.1 for three groups, with changed numbers."""


def test_a_printed_table_is_read_whatever_the_group_is_called() -> None:
    member = ("kafka-python-3.0.12-f7d6444f-f839-44fe-9e5f-9358d11aad95", "/127.0.0.1", "kafka-python-3.0.12")
    assert parse_group_offsets(_PRINTED.read_text("utf-8")) == [
        GroupOffset("../../etc/passwd", "t1", 0, 5, 0, -5, None, None, None),
        GroupOffset("live group", "t1", 0, None, 12, None, *member),
        GroupOffset("live group", "t.2_x-y", 10, 7, 12, 5, *member),
        GroupOffset("new\nline", "t1", 0, 5, 9, 4, None, None, None),
    ]

"""Jars and the Java for them: downloaded once and verified, found, and in the bill of materials."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests

from streaming import jars
from streaming.exceptions import SetupError
from streaming.jars import Jar, classpath, fetch, find_java, jar_sets, java_release
from tests.java_tools import GroupOffset, parse_group_offsets

_ROOT = Path(__file__).parents[1]
_GOOD = b"the right bytes"

Receive = Callable[[Jar, Path], bytes]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a list of two sets with one jar each, the second including the first."""
    sha256 = hashlib.sha256(_GOOD).hexdigest()
    listed = tmp_path / "jars.toml"
    listed.write_text(
        f'[small.jars]\n"org.example:one:1.0" = "{sha256}"\n'
        f'[large]\nuses = ["small"]\n[large.jars]\n"org.example:two:2.0" = "{sha256}"\n'
    )
    monkeypatch.setattr(jars, "_JARS_FILE", listed)
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path / "cache"))
    jar_sets.cache_clear()
    classpath.cache_clear()
    yield tmp_path / "cache" / "jars"
    jar_sets.cache_clear()
    classpath.cache_clear()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Callable[[Receive], list[str]]:
    """Replace the registry with a function; returns the list of requested coordinates."""

    def install(receive: Receive) -> list[str]:
        asked: list[str] = []

        def received(jar: Jar, scratch: Path) -> Path:
            asked.append(jar.coordinate)
            path = scratch / "received.jar"
            path.write_bytes(receive(jar, scratch))
            return path

        monkeypatch.setattr(jars, "_receive", received)
        return asked

    return install


def _sends_good(_jar: Jar, _scratch: Path) -> bytes:
    return _GOOD


def test_what_is_missing_is_downloaded_once(cache: Path, registry: Callable[[Receive], list[str]]) -> None:
    asked = registry(_sends_good)
    assert fetch(["large"]) == 2
    assert sorted(asked) == ["org.example:one:1.0", "org.example:two:2.0"]
    assert classpath("large") == [cache / "org.example" / "one-1.0.jar", cache / "org.example" / "two-2.0.jar"]
    assert classpath("small") == [cache / "org.example" / "one-1.0.jar"]
    assert fetch() == 0
    assert len(asked) == 2


def test_a_damaged_jar_is_refused_and_downloaded_again(cache: Path, registry: Callable[[Receive], list[str]]) -> None:
    asked = registry(_sends_good)
    fetch(["small"])
    (cache / "org.example" / "one-1.0.jar").write_bytes(b"bit rot")
    classpath.cache_clear()
    with pytest.raises(SetupError, match=r"org\.example:one:1\.0 is damaged .*: run `make setup`"):
        classpath("small")
    assert fetch(["small"]) == 1
    assert asked == ["org.example:one:1.0"] * 2
    assert classpath("small")[0].read_bytes() == _GOOD


def test_a_jar_that_never_arrived_says_what_to_run(cache: Path) -> None:
    with pytest.raises(SetupError, match=r"has not been downloaded .*: run `make setup`"):
        classpath("small")


def test_one_wrong_transfer_is_repeated(cache: Path, registry: Callable[[Receive], list[str]]) -> None:
    answers = iter([b"half of i", _GOOD])
    asked = registry(lambda _jar, _scratch: next(answers))
    assert fetch(["small"]) == 1
    assert len(asked) == 2


def test_wrong_bytes_twice_are_one_sentence_and_leave_nothing(
    cache: Path, registry: Callable[[Receive], list[str]]
) -> None:
    registry(lambda _jar, _scratch: b"something else")
    with pytest.raises(SetupError, match=r"does not have the SHA-256 of conf/jars\.toml"):
        fetch(["small"])
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_no_network_is_one_sentence(cache: Path, registry: Callable[[Receive], list[str]]) -> None:
    def refuse(_jar: Jar, _scratch: Path) -> bytes:
        raise requests.ConnectionError("a long story")

    registry(refuse)
    with pytest.raises(SetupError, match=r"did not send it \(ConnectionError\): check the network"):
        fetch(["small"])


def test_a_full_disk_is_one_sentence(cache: Path, registry: Callable[[Receive], list[str]]) -> None:
    def fill(_jar: Jar, _scratch: Path) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    registry(fill)
    with pytest.raises(SetupError, match=r"cannot be written to .* \(No space left on device\): free some"):
        fetch(["small"])


def test_a_cache_that_cannot_be_made_is_one_sentence(
    tmp_path: Path, cache: Path, registry: Callable[[Receive], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry(_sends_good)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path / "file"))
    with pytest.raises(SetupError, match=r"cannot be written to .* set EVENKEEL_CACHE to another folder"):
        fetch(["small"])


def test_an_unknown_set_names_those_there_are(cache: Path) -> None:
    with pytest.raises(SetupError, match=r"no set of jars named 'huge' .*: it has small, large"):
        fetch(["huge"])


def test_every_jar_of_the_repository_has_an_exact_version_and_a_sha256() -> None:
    jar_sets.cache_clear()
    every = {jar for members in jar_sets().values() for jar in members}
    assert {"spark", "broker", "tools"} <= set(jar_sets())
    for name, members in jar_sets().items():
        # Sets for one class path have each artifact once; the others contain several releases for comparison.
        if name in {"spark", "broker", "tools"}:
            assert len(members) == len({(jar.group, jar.artifact) for jar in members})
    for jar in every:
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256), jar
        assert re.fullmatch(r"\d[\w.-]*", jar.version), jar
        assert "SNAPSHOT" not in jar.version


def _fetch_without_network(cache: Path | None) -> subprocess.CompletedProcess[str]:
    # Port 9 (discard) of this machine refuses connections: every request goes there and none gets out.
    dead = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, **dead, "PYTHONPATH": str(_ROOT), "no_proxy": "", "NO_PROXY": ""}
    if cache is not None:
        environment["EVENKEEL_CACHE"] = str(cache)
    command = [sys.executable, "-m", "streaming.jars", "fetch"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_jars_once_fetched_are_found_without_network() -> None:
    ended = _fetch_without_network(None)
    assert (ended.returncode, ended.stdout) == (0, "All jars are there.\n"), ended.stderr


def test_the_command_without_network_ends_with_2_and_one_sentence(tmp_path: Path) -> None:
    ended = _fetch_without_network(tmp_path)
    assert ended.returncode == 2
    last = ended.stderr.strip().splitlines()[-1]
    assert re.fullmatch(r"The jar .* could not be downloaded, .*: check the network and proxy settings.*\.", last)
    assert "Traceback" not in ended.stderr


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


_CONF = Path(__file__).resolve().parents[1] / "conf"
_APACHE = "\n     Apache License\n  Version 2.0, January 2004\n"


@pytest.fixture
def supply(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(_CONF))
    return import_module("supply")


def _pom(licence: str) -> str:
    names = f"<licenses><license><name>{licence}</name></license></licenses>" if licence else ""
    return f'<project xmlns="http://maven.apache.org/POM/4.0.0">{names}</project>'


@pytest.mark.parametrize(
    ("files", "licence"),
    [
        ({"META-INF/maven/g/a/pom.xml": _pom("MIT"), "LICENSE": _APACHE}, "MIT"),
        ({"META-INF/maven/g/a/pom.xml": _pom(""), "META-INF/LICENSE.txt": _APACHE}, "Apache-2.0"),
        ({"META-INF/MANIFEST.MF": "A: b\r\nBundle-License: https://www.apache.org/licenses/LIC\r\n ENSE-2.0\r\n"},
         "https://www.apache.org/licenses/LICENSE-2.0"),
        # What is in a jar beside its own classes has licences of its own.
        ({"META-INF/maven/g/a/pom.xml": _pom("MIT"), "META-INF/maven/g/b/pom.xml": _pom("GPL")}, None),
        ({"META-INF/LICENSE-of-something-inside": _APACHE}, None),
        ({"LICENSE": "All rights reserved."}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_a_jars_licence_is_what_the_jar_says_of_itself(
    supply: ModuleType, tmp_path: Path, files: dict[str, str], licence: str | None
) -> None:
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as jar:
        for name, text in files.items():
            jar.writestr(name, text)
    assert supply.of_jar(tmp_path / "a.jar") == licence


def test_an_unknown_licence_is_written_as_unknown(supply: ModuleType) -> None:
    parts = [
        {"name": "a", "version": "1", "group": "g", "scope": "required"},
        {"name": "b", "version": "2", "scope": "excluded", "licenses": [{"license": {"name": "MIT"}}], "components": [
            {"name": "c", "version": "3"}]},
    ]  # fmt: skip
    assert list(supply.licence_rows({"components": parts}))[2:] == [
        "| g:a | 1 | unknown | required |",
        "| b | 2 | MIT | excluded |",
        "| c (in b) | 3 | unknown | excluded |",
    ]


def _pip_audit(monkeypatch: pytest.MonkeyPatch, supply: ModuleType, dependencies: list[dict[str, Any]] | None) -> None:
    told = "no answer" if dependencies is None else json.dumps({"dependencies": dependencies})
    done = subprocess.CompletedProcess([], 0, told, "")
    monkeypatch.setattr(supply, "run_tool", lambda *_, **__: done)


_WELL = {"name": "a", "version": "1", "vulns": []}
_ILL = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1"}]}
_SKIPPED = {"name": "c", "version": "3", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("dependencies", "code", "told"),
    [
        ([_WELL], 0, "Advisories of Python packages: 0 for 1."),
        ([_WELL, _ILL], 1, "b 2: CVE-1"),
        ([_SKIPPED], 3, "not reachable here for 1 of 1"),
        ([_ILL, _SKIPPED], 3, "b 2: CVE-1"),
        (None, 3, "not reachable here"),
    ],
)
def test_packages_that_could_not_be_looked_up_are_said_and_end_with_a_code_of_their_own(
    supply: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    dependencies: list[dict[str, Any]] | None, code: int, told: str,
) -> None:  # fmt: skip
    _pip_audit(monkeypatch, supply, dependencies)
    assert supply.audit_packages() == code
    assert told in capsys.readouterr().out


class _Answer:
    def __init__(self, results: object) -> None:
        self._results = results

    def raise_for_status(self) -> None:
        pass

    def json(self) -> object:
        return self._results


@pytest.mark.parametrize(
    ("results", "code", "told"),
    [
        ({"results": [{}, {}]}, 0, "Advisories of jars: 0 for 2."),
        ({"results": [{}, {"vulns": [{"id": "GHSA-1"}]}]}, 1, "g:b:2: GHSA-1"),
        ({"results": [{}]}, 3, "not reachable here for 2 of 2"),
        ([], 3, "not reachable here for 2 of 2"),
        (None, 3, "not reachable here for 2 of 2"),
    ],
)
def test_jars_that_could_not_be_looked_up_are_said_and_end_with_a_code_of_their_own(
    supply: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    results: object, code: int, told: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(supply, "pyspark_jars", lambda: ["a", "b", "c"])
    monkeypatch.setattr(supply, "coordinate", {"a": ("g", "a", "1"), "b": ("g", "b", "2"), "c": (None, "c", "3")}.get)
    monkeypatch.setattr(supply, "listed_jars", dict)

    def post(*_: object, json: dict[str, Any], **__: object) -> _Answer:
        assert [query["package"]["name"] for query in json["queries"]] == ["g:a", "g:b"]
        if results is None:
            raise requests.ConnectionError
        return _Answer(results)

    monkeypatch.setattr(supply.requests, "post", post)
    assert supply.audit_jars() == code
    said = capsys.readouterr().out
    assert told in said
    assert "1 jars in pyspark do not say their group" in said


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_the_bill_of_materials_has_every_package_of_the_lock_and_every_jar_with_its_hash(supply: ModuleType) -> None:
    subprocess.run([sys.executable, _CONF / "supply.py", "sbom"], check=True, cwd=_CONF.parent)
    document = json.loads((_CONF.parent / "build" / "sbom.json").read_text(encoding="utf-8"))
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "evenkeel")
    hashes = {
        part["purl"].removeprefix("pkg:maven/").replace("/", ":").replace("@", ":"): part["hashes"][0]["content"]
        for part in document["components"]
        if part["purl"].startswith("pkg:maven/")
    }
    assert hashes == {jar.coordinate: jar.sha256 for jar in supply.listed_jars()}
    scopes = {supply.canonicalize_name(part["name"]): part["scope"] for part in document["components"]}
    lock = (_CONF / "requirements.lock").read_text(encoding="utf-8")
    # A line for Windows alone is not installed here.
    named = [line for line in lock.splitlines() if "==" in line and line[0].isalnum() and "win32" not in line]
    locked = {supply.canonicalize_name(line.partition("==")[0]) for line in named}
    assert sorted(locked - scopes.keys()) == []
    assert [scopes[name] for name in ("pyspark", "kafka-python", "confluent-kafka", "pytest", "mypy")] == [
        *("required", "required", "optional", "excluded", "excluded")
    ]

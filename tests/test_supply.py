"""What `make sbom` says a jar's licence is, and that `make audit` never takes silence for health (`conf/supply.py`)."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests

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
    scopes = {supply.plain(part["name"]): part["scope"] for part in document["components"]}
    lock = (_CONF / "requirements.lock").read_text(encoding="utf-8")
    # (Of the lines for one system alone that for Windows is not installed here.)
    named = [line for line in lock.splitlines() if "==" in line and line[0].isalnum() and "win32" not in line]
    locked = {supply.plain(line.partition("==")[0]) for line in named}
    assert sorted(locked - scopes.keys()) == []
    assert [scopes[name] for name in ("pyspark", "kafka-python", "confluent-kafka", "pytest", "mypy")] == [
        *("required", "required", "optional", "excluded", "excluded")
    ]

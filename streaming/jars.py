"""The Java that runs Spark and the embedded broker, and the jars of `conf/jars.toml`.

Jars are downloaded once, checked by SHA-256, and used without network from then on.

    python -m streaming.jars fetch [SET ...]      # all sets by default

There is no dependency resolution: the file lists every jar, transitive ones too; jgo fetches single files by
coordinate. Jars are stored in `jars` of the cache (`streaming/places.py`), as `<group>/<artifact>-<version>.jar`.
A file gets that name only once its checksum is verified, so an interrupted download leaves nothing that could be
mistaken for a jar, and two fetches at once do no harm.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from streaming.exceptions import SetupError
from streaming.lifecycle import exit_code
from streaming.places import cache_folder as cache
from streaming.places import shipped

OLDEST_RELEASE = 17
"""Spark 4.x and Kafka 4.x are compiled for Java 17; an older JVM refuses their classes. Spark 4.2 names 17, 21, 25; a
newer one may work."""

_VERSION_TIMEOUT_S = 60
"""`java -version` takes 0.1 s; a minute allows for a busy machine or a cold disk."""


def find_java() -> Path:
    """Return the `java` program to run: the one in `JAVA_HOME` if that is set, else the first on the `PATH`.

    Spark's own `spark-class` looks in the same order, so that job and broker never run on different releases.

    Raises:
        SetupError: There is none, it does not start, or it is older than `OLDEST_RELEASE`.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            message = (
                f"JAVA_HOME is {home}, but there is no program {java}: "
                f"point it at a JDK {OLDEST_RELEASE} or newer, or unset it."
            )
            raise SetupError(message)
    else:
        found = shutil.which("java")
        if found is None:
            message = (
                f"No Java was found: install a JDK {OLDEST_RELEASE} or newer, and put it on the PATH or set JAVA_HOME."
            )
            raise SetupError(message)
        java = Path(found)
    release = java_release(java)
    if release < OLDEST_RELEASE:
        message = (
            f"{java} is Java {release}, and Spark and Kafka need {OLDEST_RELEASE} or newer: "
            "install one and set JAVA_HOME to it."
        )
        raise SetupError(message)
    return java


@lru_cache(maxsize=8)
def java_release(java: Path) -> int:
    """Return the feature release of a Java program: 17 for 17.0.15, 8 for 1.8.0_392.

    Raises:
        SetupError: It does not start, or prints no version (macOS has such a stub in place of a missing JDK).
    """
    try:
        said = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"{java} does not start ({error}): install a JDK {OLDEST_RELEASE} or newer and set JAVA_HOME."
        raise SetupError(message) from error
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if version is None:
        message = f"{java} is not a working Java: install a JDK {OLDEST_RELEASE} or newer and set JAVA_HOME to it."
        raise SetupError(message)
    return int(version.group(1))


_JARS_FILE = shipped("jars.toml")

_PARALLEL_DOWNLOADS = 6
"""Most jars are small, so round trips are the cost; with many more connections a registry would suspect abuse."""

_ATTEMPTS = 2
"""A broken transfer deserves one retry; a jar with a wrong checksum twice will stay wrong."""

_TIMEOUT_S = 30
"""Until a server answers or sends the next piece; not for the whole file."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar by its Maven coordinate and the SHA-256 (hex) of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        """`group:artifact:version`, as in `conf/jars.toml`."""
        return f"{self.group}:{self.artifact}:{self.version}"

    def path_in(self, folder: Path) -> Path:
        """Where the jar belongs in a cache folder, whether or not it is there."""
        return folder / self.group / f"{self.artifact}-{self.version}.jar"


def cache_folder() -> Path:
    """Return the folder of the jars; it need not exist yet."""
    return cache() / "jars"


@lru_cache(maxsize=1)
def jar_sets() -> dict[str, tuple[Jar, ...]]:
    """Return the sets of `conf/jars.toml` by name, each with the jars of the sets it uses."""
    document = tomllib.loads(_JARS_FILE.read_text("utf-8"))
    return {name: tuple(_members(name, document)) for name in document}


def _members(name: str, document: dict[str, Any]) -> Iterator[Jar]:
    for used in document[name].get("uses", []):
        yield from _members(used, document)
    for coordinate, sha256 in document[name]["jars"].items():
        group, artifact, version = coordinate.split(":")
        yield Jar(group, artifact, version, sha256)


def jars_of(name: str) -> tuple[Jar, ...]:
    """Return the jars of one set.

    Raises:
        SetupError: There is no such set.
    """
    sets = jar_sets()
    if name not in sets:
        message = f"There is no set of jars named {name!r} in {_JARS_FILE}: it has {', '.join(sets)}."
        raise SetupError(message)
    return sets[name]


@lru_cache(maxsize=8)
def classpath(name: str) -> list[Path]:
    """Return the paths of a set's jars, in the file's order, each checked by its SHA-256 once per process.

    Works without network, and never downloads: see `fetch`.

    Raises:
        SetupError: There is no such set, or a jar is missing or has another SHA-256.
    """
    folder = cache_folder()
    paths = []
    for jar in jars_of(name):
        path = jar.path_in(folder)
        if not _is_right(path, jar):
            state = "is damaged" if path.exists() else "has not been downloaded"
            message = (
                f"The jar {jar.coordinate} {state} ({path}): run `make setup`, or `python -m streaming.jars fetch`."
            )
            raise SetupError(message)
        paths.append(path)
    return paths


def fetch(names: Sequence[str] = (), *, console: Console | None = None) -> int:
    """Download the missing jars of the named sets (none named: all), in parallel, with a progress bar.

    Returns:
        How many jars were downloaded; 0 means that all were there and that the network was not used.

    Raises:
        SetupError: No network, no space, no such jar, or bytes with a wrong SHA-256 twice.
    """
    folder = cache_folder()
    wanted = {jar for name in (names or jar_sets()) for jar in jars_of(name)}
    missing = sorted((j for j in wanted if not _is_right(j.path_in(folder), j)), key=lambda j: j.coordinate)
    if not missing:
        return 0
    console = console or Console(stderr=True)
    with Progress(console=console) as progress, ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool:
        for _ in progress.track(
            pool.map(lambda jar: _download(jar, folder), missing), total=len(missing), description="jars"
        ):
            pass
    classpath.cache_clear()
    return len(missing)


def _download(jar: Jar, folder: Path) -> None:
    # Imported here, as jgo is below: a start that finds its jars does without it.
    import requests  # noqa: PLC0415

    for _ in range(_ATTEMPTS):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as scratch:
                path = _receive(jar, Path(scratch))
                if _is_right(path, jar):
                    target = jar.path_in(folder)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    path.replace(target)
                    return
            reason = "what arrived does not have the SHA-256 of conf/jars.toml"
        except (requests.RequestException, RuntimeError) as error:
            # RuntimeError of jgo: no repository has the file, or its SHA-1 is another than the published one.
            reason = f"the registry of Maven artifacts did not send it ({type(error).__name__})"
        except OSError as error:
            message = (
                f"The jars cannot be written to {folder} ({error.strerror or error}): free some space there, or set "
                "EVENKEEL_CACHE to another folder."
            )
            raise SetupError(message) from error
    message = f"The jar {jar.coordinate} could not be downloaded, {reason}: check the network and proxy settings."
    raise SetupError(message)


def _receive(jar: Jar, scratch: Path) -> Path:
    # Imported here: jgo takes 0.2 s to import, and a start that finds its jars does not need it.
    from jgo.config import GlobalSettings  # noqa: PLC0415
    from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415

    # Repositories in the user's own jgo settings (a company's mirror) are asked as well.
    own = dict(GlobalSettings.load().repositories)
    context = MavenContext(resolver=PythonResolver(), repo_cache=scratch, timeout=_TIMEOUT_S)
    context.remote_repos = {**own, **context.remote_repos}
    return Path(context.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve())


def _is_right(path: Path, jar: Jar) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except OSError:
        return False  # missing or unreadable: the download will show which


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of this module; returns the exit code."""

    def download() -> None:
        find_java()
        count = fetch(chosen.sets)
        sys.stdout.write(f"{count} jars downloaded to {cache_folder()}.\n" if count else "All jars are there.\n")

    parser = argparse.ArgumentParser(
        prog="python -m streaming.jars", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=["fetch"], help="download what is missing")
    parser.add_argument("sets", nargs="*", metavar="SET", help="of these sets; default: of all")
    chosen = parser.parse_args(arguments)
    return exit_code(download)


if __name__ == "__main__":
    sys.exit(main())

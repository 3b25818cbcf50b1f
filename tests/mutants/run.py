"""A sample of mutants against the fast tests of their rooms."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Final

from tests.mutants.mutations import Mutation, mutated, mutations_of

__all__ = ["ROOMS", "Mutant", "Result", "run", "sample"]

_CHECKOUT: Final = Path(__file__).parents[2]
_EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")

ROOMS: Final = {
    "assignors": ("tests/assignors",),
    "streaming/groups/classic": ("tests/groups/classic", "tests/groups"),
    "streaming/groups/health": ("tests/groups/health", "tests/groups"),
    "streaming/groups/lag": ("tests/groups/lag", "tests/groups"),
    "streaming/groups/modern": ("tests/groups/modern", "tests/groups"),
    "streaming/groups/what_if": ("tests/groups/what_if", "tests/groups"),
    "streaming/groups": ("tests/groups",),
    "streaming/log_health": ("tests/log_health",),
    "streaming/offsets_log": ("tests/offsets_log", "tests/groups"),
    "streaming/records": ("tests/records", "tests/offsets_log", "tests/groups"),
    "streaming/times.py": ("tests/test_times.py", "tests/groups"),
}
"""The core's modules, and where the tests of each are, the nearest first; a module belongs to the first that fits."""

# Fuzz at a fiftieth of what `make test` has: a mutant that takes more than a few dozen cases to notice is rare.
_FAST: Final = {"CASES": "40"}
_MARKS: Final = "not kafka and not spark and not soak"

# An endless loop is noticed by time: the slowest room's tests take a sixth of this on one core.
_TIMEOUT_S: Final = 900.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file of the product."""

    path: str
    mutation: Mutation
    tests: tuple[str, ...]

    def __str__(self) -> str:
        of = self.mutation
        return f"{self.path}:{of.line} {of.function}: {of.change}: {of.code[:100]}"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant.

    Attributes:
        mutant: The mutant.
        killed_by: The test that failed, or "time"; None where none did.
        reason: Why it makes no difference, where `equivalent.toml` says so.
    """

    mutant: Mutant
    killed_by: str | None
    reason: str | None = None


def sample(count: int, seed: str, rooms: Sequence[str] = ()) -> list[Mutant]:
    """Draw mutants, each line of the core as likely as another.

    Args:
        count: How many at most.
        seed: The same seed draws the same sample of the same code.
        rooms: Beginnings of paths; all of the core where none is given.
    """
    found: list[Mutant] = []
    for path in sorted(_modules()):
        name = str(path.relative_to(_CHECKOUT))
        if rooms and not name.startswith(tuple(rooms)):
            continue
        tests = next(tests for room, tests in ROOMS.items() if name == room or name.startswith(f"{room}/"))
        found += [Mutant(name, mutation, tests) for mutation in mutations_of(path.read_text("utf-8"))]
    return Random(seed).sample(found, min(count, len(found)))


def run(mutants: Sequence[Mutant], workers: int) -> Iterator[Result]:
    """Test the mutants, several at a time; results in the order of the sample.

    Args:
        mutants: The sample.
        workers: How many run at the same time; each has a copy of the checkout.

    Yields:
        A result for each.
    """
    reasons = {(entry["path"], entry["change"], entry["code"]): entry["why"] for entry in _equivalent()}
    with tempfile.TemporaryDirectory(prefix="evenkeel-mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copies.put(_copy(Path(folder) / str(number)))

        def test(mutant: Mutant) -> Result:
            reason = reasons.get((mutant.path, mutant.mutation.change, mutant.mutation.code))
            if reason is not None:
                return Result(mutant, None, reason)
            copy = copies.get()
            try:
                return Result(mutant, _killed_by(mutant, copy))
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(test, mutants)


def _modules() -> Iterator[Path]:
    for room in ROOMS:
        path = _CHECKOUT / room
        if path.is_file():
            yield path
        elif not any(room.startswith(f"{other}/") for other in ROOMS):
            yield from path.rglob("*.py")


def _equivalent() -> list[dict[str, str]]:
    return tomllib.loads(_EQUIVALENT.read_text("utf-8")).get("mutants", []) if _EQUIVALENT.exists() else []


def _copy(to: Path) -> Path:
    without = shutil.ignore_patterns(".*", "__pycache__")
    to.mkdir()
    for name in ("assignors", "conf", "dashboards", "docs", "streaming", "tests"):
        shutil.copytree(_CHECKOUT / name, to / name, ignore=without)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile"):
        shutil.copy(_CHECKOUT / name, to)
    (to / ".cache").symlink_to(_CHECKOUT / ".cache")
    (to / ".venv").symlink_to(_CHECKOUT / ".venv")
    return to


def _killed_by(mutant: Mutant, copy: Path) -> str | None:
    target = copy / mutant.path
    with _replaced(target, mutated(target.read_text("utf-8"), mutant.mutation.number)):
        for at, tests in enumerate(mutant.tests):
            done = [f"--ignore={earlier}" for earlier in mutant.tests[:at]]
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", _MARKS, *done, tests]
            environment = os.environ | _FAST | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                ended = subprocess.run(
                    command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
                )
            except subprocess.TimeoutExpired:
                return "time"
            if ended.returncode not in {0, 5}:  # (5: the room has no fast test)
                lines = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return lines[0][:200] if lines else f"exit code {ended.returncode}"
    return None


@contextmanager
def _replaced(path: Path, text: str) -> Iterator[None]:
    before = path.read_text("utf-8")
    path.write_text(text, "utf-8")
    try:
        yield
    finally:
        path.write_text(before, "utf-8")

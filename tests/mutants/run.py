"""A sample of mutants against the fast tests that execute them, each in a fork of this process.

The tests run once while it is recorded which of them executes which line. This process then imports what they import
apart from the core and the tests themselves. Each mutant is a fork of it, in which the import of one module returns the
changed one: no copy of the checkout is needed, and no fork pays for the start of Python, pytest, Hypothesis and numpy.
(A process that a test starts sees the module as it is.)
"""

from __future__ import annotations

import gc
import hashlib
import heapq
import importlib
import importlib.util
import os
import pickle
import resource
import signal
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from types import CodeType
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutants.executions import Executions, merged, module_name, record
from tests.mutants.mutations import Mutation, mutated, mutations_of

_CHECKOUT: Final = Path(__file__).parents[2]
_EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")

ROOMS: Final = (
    "assignors",
    "streaming/groups",
    "streaming/log_health",
    "streaming/offsets_log",
    "streaming/records",
    "streaming/times.py",
)
"""The core."""

_TESTS: Final = (
    "tests/assignors",
    "tests/groups",
    "tests/log_health",
    "tests/offsets_log",
    "tests/records",
    "tests/test_times.py",
)

# Fuzz at a tenth of what `make test` has: a mutant that takes more than a few dozen cases to notice is rare, but with
# fewer than about two hundred some of these tests miss the kinds of cases that they want to have seen.
_FAST: Final = {"CASES": "200"}
_PYTEST: Final = (
    *("-q", "-m", "not kafka and not spark and not soak", "-p", "no:cacheprovider"),
    *("--timeout-method", "thread", "--hypothesis-profile", "mutants"),  # SIGALRM is needed here
)

# An endless loop is noticed by time. A test may take ten times as long as while it was recorded, and some seconds more,
# because the machine may be doing something else as well.
_TIMES: Final = 10
_SECONDS_MORE: Final = 10

# A mutant that fills a list in an endless loop must not take the memory of everything else.
_MOST_MEMORY: Final = 4 << 30


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file of the product."""

    path: str
    mutation: Mutation

    def __str__(self) -> str:
        of = self.mutation
        return f"{self.path}:{of.line} {of.function}: {of.change}: {of.code}"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant.

    Attributes:
        mutant: The mutant.
        killed_by: The test that failed, or "time"; None where none did.
        reason: Why it makes no difference, where `equivalent.toml` says so.
        tests: How many tests execute the changed statement; None where none was run because there is a reason.
    """

    mutant: Mutant
    killed_by: str | None = None
    reason: str | None = None
    tests: int | None = None

    @property
    def word(self) -> str:
        """killed, equivalent or survived."""
        return "killed" if self.killed_by else "equivalent" if self.reason else "survived"

    def __str__(self) -> str:
        if self.killed_by or self.reason:
            return self.killed_by or f"makes no difference: {self.reason}"
        return f"SURVIVED {self.tests} tests" if self.tests else "NO FAST TEST EXECUTES IT"


def sample(count: int, seed: str, rooms: Sequence[str] = ()) -> list[Mutant]:
    """Draw mutants, each change of the core as likely as another.

    Args:
        count: How many at most.
        seed: Another seed draws another sample. A change is drawn by its own text, so that a sample stays what it was
            while code beside it changes or moves: a test that once noticed one of its mutants is asked again.
        rooms: Beginnings of paths; all of the core where none is given.
    """
    alike: Counter[tuple[str, str, str]] = Counter()
    drawn: list[tuple[bytes, Mutant]] = []
    for mutant in _all():
        of = mutant.mutation
        text = (of.function, of.change, of.code)
        alike[text] += 1
        if not rooms or mutant.path.startswith(tuple(rooms)):
            number = hashlib.sha256("\0".join((seed, *text, str(alike[text]))).encode()).digest()
            drawn.append((number, mutant))
    return [mutant for _, mutant in heapq.nsmallest(count, drawn, key=itemgetter(0))]


@dataclass(frozen=True, slots=True)
class Equivalent:
    """The changes that make no difference.

    Attributes:
        single: Why, by function, change and code. Files do not matter, they are moved.
        families: Why, by the code of statements no change of which makes a difference; `*` stands for any text.
    """

    single: Mapping[tuple[str, str, str], str]
    families: Mapping[str, str]

    def reason(self, mutation: Mutation) -> str | None:
        """Why a change makes no difference; None where it may make one."""
        if why := self.single.get((mutation.function, mutation.change, mutation.code)):
            return why
        return next((why for code, why in self.families.items() if fnmatchcase(mutation.code, code)), None)


def equivalent() -> Equivalent:
    """What `equivalent.toml` lists."""
    listed = tomllib.loads(_EQUIVALENT.read_text("utf-8"))
    single = {(entry["function"], entry["change"], entry["code"]): entry["why"] for entry in listed["mutants"]}
    return Equivalent(single, {entry["code"]: entry["why"] for entry in listed["families"]})


def run(mutants: Sequence[Mutant], workers: int, patience_s: float) -> Iterator[Result]:
    """Test the mutants, several at a time.

    Args:
        mutants: The sample.
        workers: How many run at the same time.
        patience_s: The slowest tests are left out where all together take more processor time (while they are recorded,
            which makes them two to four times slower).

    Yields:
        A result for each, as they come.
    """
    reasons = equivalent()
    to_test: list[Mutant] = []
    for mutant in mutants:
        if reason := reasons.reason(mutant.mutation):
            yield Result(mutant, reason=reason)
        else:
            to_test.append(mutant)
    executions = _recorded(workers)
    if executions.failed:
        raise RuntimeError(f"The tests fail without any change ({', '.join(executions.failed)}): mend them first.")
    for module in executions.modules:
        if module.partition(".")[0] not in {"assignors", "streaming", "tests", "__main__"}:
            with suppress(Exception):  # some modules can only be imported by another one
                importlib.import_module(module)
    gc.freeze()
    texts = {str(path.relative_to(_CHECKOUT)): path.read_text("utf-8") for path in _files()}
    running: dict[int, tuple[int, Mutant, int]] = {}
    try:
        while to_test or running:
            while to_test and len(running) < workers:
                mutant = to_test.pop(0)
                tests = executions.tests_of(mutant.path, mutant.mutation, texts)
                elapsed = accumulate(executions.processor_seconds[test] for test in tests)
                tests = [test for test, until in zip(tests, elapsed, strict=True) if until <= patience_s] or tests[:1]
                if not tests:
                    yield Result(mutant, tests=0)
                    continue
                text = mutated(texts[mutant.path], mutant.mutation.number)
                process, pipe = _forked(partial(_test, mutant.path, text, tests, executions.seconds))
                running[process] = (pipe, mutant, len(tests))
            if running:
                process, status = os.wait()
                pipe, mutant, count = running.pop(process)
                _kill(process)
                yield Result(mutant, _killed_by(status, _read(pipe)), tests=count)
    finally:
        for process in running:
            _kill(process)


@cache
def _all() -> list[Mutant]:
    return [
        Mutant(str(path.relative_to(_CHECKOUT)), mutation)
        for path in _files()
        for mutation in mutations_of(path.read_text("utf-8"))
    ]


def _files() -> list[Path]:
    rooms = [_CHECKOUT / room for room in ROOMS]
    return sorted(path for room in rooms for path in ([room] if room.is_file() else room.rglob("*.py")))


def _recorded(workers: int) -> Executions:
    """Run the tests in processes of their own, so that this one does not import the core."""
    os.environ.update(_FAST)
    # Random input is the same each time. What fails need not be made small, as a person would want it. (And no test is
    # too slow here: recording takes its time, and a timeout would end this process without a word.)
    settings.register_profile(
        "mutants",
        database=None,
        derandomize=True,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    shares = [share for worker in range(workers) if (share := _test_files()[worker::workers])]
    forks = [_forked(partial(_record, share)) for share in shares]
    parts: list[Executions] = []
    try:
        for process, pipe in forks:
            said = _read(pipe)
            _, status = os.waitpid(process, 0)
            if not said.startswith(b"\x80"):
                # Without a word: something killed it, the kernel for its memory or a test for its end.
                why = said.decode("utf-8", "replace") or f"it ended with {os.waitstatus_to_exitcode(status)}"
                raise RuntimeError(f"The run that records which test executes which line failed: {why}")
            parts.append(pickle.loads(said))
    finally:
        for process, _ in forks:
            _kill(process)
    return merged(parts)


def _test_files() -> list[str]:
    listed = [_CHECKOUT / tests for tests in _TESTS]
    files = [path for tests in listed for path in ([tests] if tests.is_file() else tests.rglob("test_*.py"))]
    return sorted(str(path.relative_to(_CHECKOUT)) for path in files)


def _record(tests: Sequence[str], say: Callable[[bytes], object]) -> None:
    say(pickle.dumps(record(_files(), _CHECKOUT, [*_PYTEST, "--timeout=0", *tests])))


def _forked(work: Callable[[Callable[[bytes], object]], object]) -> tuple[int, int]:
    """Do work in a fork that prints nothing; its process, and a pipe of what it says."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        with os.fdopen(writing, "wb") as pipe:
            try:
                work(pipe.write)
            except BaseException as error:  # noqa: BLE001  the other process reports it
                pipe.write(repr(error).encode())
    finally:
        os._exit(0)


def _read(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as said:
        return said.read()


def _kill(process: int) -> None:
    """Kill a fork, and the JVMs that its tests have started."""
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def _killed_by(status: int, said: bytes) -> str | None:
    if os.WIFSIGNALED(status):
        by = os.WTERMSIG(status)
        return "time" if by == signal.SIGALRM else f"signal {by}"
    return said.decode("utf-8", "replace") or None


def _test(
    path: str, text: str, tests: Sequence[str], seconds: Mapping[str, float], say: Callable[[bytes], object]
) -> None:
    """Run tests against a changed module, and say which one fails, if one does."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
    signal.alarm(int(_SECONDS_MORE + _TIMES))
    sys.meta_path.insert(0, _Changed(path, text))
    chosen = _Chosen(tests, seconds)
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    code = pytest.main(["-x", *_PYTEST, *files], plugins=[chosen])
    if code != pytest.ExitCode.OK:
        say((chosen.failed or str(code)).encode())


class _Changed(MetaPathFinder):
    """Imports one module with another text."""

    def __init__(self, path: str, text: str) -> None:
        self._name = module_name(Path(path))
        self._path = str(_CHECKOUT / path)
        self._text = text

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        if fullname != self._name:
            return None
        folder = [str(Path(self._path).parent)] if self._path.endswith("__init__.py") else None
        loader = _Loader(fullname, self._path, self._text)
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=loader, submodule_search_locations=folder
        )


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return compile(self._text, self.path, "exec")


class _Chosen:
    """A plugin of pytest that runs only some tests, in a given order, each within its time."""

    def __init__(self, tests: Sequence[str], seconds: Mapping[str, float]) -> None:
        self.failed = ""
        self._at = {test: at for at, test in enumerate(tests)}
        self._seconds = seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # A test that was not there before is a row of parameters that the core gives: a difference to look at.
        kept = [item for item in items if item.nodeid in self._at or item.nodeid not in self._seconds]
        items[:] = sorted(kept, key=lambda item: self._at.get(item.nodeid, 0))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        signal.alarm(int(_SECONDS_MORE + _TIMES * self._seconds.get(item.nodeid, 1.0)))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

"""Which tests execute which lines of the core: a mutant needs only these."""

from __future__ import annotations

import gc
import importlib
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Final

import pytest
from coverage import Coverage

from tests.mutants.mutations import Mutation

# Who executed a line, where it was no test: the import of the core.
_IMPORT: Final = "import"


@dataclass(frozen=True, slots=True)
class Executions:
    """What a run of the tests executed.

    Attributes:
        lines: Per file of the core and line the tests that executed it, by their ids; a test file by its path where
            one of its fixtures or its import did, "import" where the import of the core did.
        seconds: What each test took, recorded and therefore slowly, in the order of the run.
        processor_seconds: The same without its waits for others, which a busy machine would make longer.
        modules: All modules that were imported in the end.
        failed: Tests that fail without any change.
    """

    lines: Mapping[str, Mapping[int, Sequence[str]]]
    seconds: Mapping[str, float]
    processor_seconds: Mapping[str, float]
    modules: Sequence[str]
    failed: Sequence[str] = ()

    def tests_of(self, path: str, mutation: Mutation, texts: Mapping[str, str]) -> list[str]:
        """The tests that execute a changed statement, the cheapest first.

        A statement that is executed by an import (a constant, a default) counts as executed by the tests that execute
        anything in a file that has its name in it.

        Args:
            path: The file of the core.
            mutation: The change.
            texts: The core's files.
        """
        first, last = mutation.lines
        found = {by for line, by_whom in self.lines[path].items() if first <= line <= last for by in by_whom}
        if _IMPORT in found:
            name = re.compile(rf"\b{re.escape(mutation.function.partition('.')[0])}\b")
            users = [path, *(user for user, text in texts.items() if name.search(text))]
            found = {by for user in users for by_whom in self.lines.get(user, {}).values() for by in by_whom}
        return sorted(
            (test for test in self.seconds if test in found or _file(test) in found),
            key=self.processor_seconds.__getitem__,
        )


def record(files: Sequence[Path], checkout: Path, arguments: Sequence[str]) -> Executions:
    """Run tests, and record what they execute; to be called in a process of its own.

    Args:
        files: The files of the core.
        checkout: Where they are, and the tests.
        arguments: For pytest.
    """
    coverage = Coverage(data_file=None, config_file=False, include=[str(file) for file in files])
    coverage.start()
    coverage.switch_context(_IMPORT)
    modules = [module_name(file.relative_to(checkout)) for file in files]
    for module in modules:
        importlib.import_module(module)
    recorder = _Recorder(coverage, modules)
    code = pytest.main(list(arguments), plugins=[recorder])
    coverage.stop()
    data = coverage.get_data()
    lines = {str(file.relative_to(checkout)): data.contexts_by_lineno(str(file)) for file in files}
    failed = recorder.failed or ([] if code == pytest.ExitCode.OK else [str(code)])
    return Executions(lines, recorder.seconds, recorder.processor_seconds, sorted(sys.modules), failed)


def merged(parts: Sequence[Executions]) -> Executions:
    """What several runs of different tests executed together."""
    lines: dict[str, dict[int, list[str]]] = {}
    for part in parts:
        for path, by_line in part.lines.items():
            of_file = lines.setdefault(path, {})
            for line, by_whom in by_line.items():
                of_file.setdefault(line, []).extend(by_whom)
    return Executions(
        lines,
        {test: seconds for part in parts for test, seconds in part.seconds.items()},
        {test: seconds for part in parts for test, seconds in part.processor_seconds.items()},
        sorted({module for part in parts for module in part.modules}),
        [test for part in parts for test in part.failed],
    )


def module_name(path: Path) -> str:
    """The dotted name of a file's module."""
    return ".".join(path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts)


def _file(test: str) -> str:
    return test.partition("::")[0]


class _Recorder:
    """A plugin of pytest that says to the recording which test runs."""

    def __init__(self, coverage: Coverage, modules: Sequence[str]) -> None:
        self.seconds: dict[str, float] = {}
        self.processor_seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._coverage = coverage
        self._caches = [
            found for found in gc.get_objects() if type(found) is _lru_cache_wrapper and found.__module__ in modules
        ]

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        if isinstance(collector, pytest.Module):
            self._coverage.switch_context(_file(collector.nodeid))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for cache in self._caches:
            cache.cache_clear()  # or only the first of several tests would be seen to execute it
        self._coverage.switch_context(_file(item.nodeid))
        began, used = time.perf_counter(), time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.perf_counter() - began
            self.processor_seconds[item.nodeid] = time.process_time() - used

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context(_file(item.nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

"""Runs the checks one after the other, and prints what each has found."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

from rich.console import Console

from streaming.config import Settings
from streaming.doctor.lake import LookResult, check_alerts, check_lake, check_watched
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError
from streaming.java import find_java, java_release
from streaming.probe import CheckResult, CheckState, inspect, tried
from streaming.terminal import say

CheckFunction = Callable[[Settings], Iterator[CheckResult]]

_PACKAGES: Final = ("evenkeel", "kafka-python", "pyspark", "deltalake", "duckdb", "pyarrow", "numpy", "apprise")


def _settings(settings: Settings) -> Iterator[CheckResult]:
    yield CheckResult("settings", "cluster and lake", "ok", f"cluster {settings.cluster}, lake {settings.lake}")


def _machine(_: Settings) -> Iterator[CheckResult]:
    releases = [f"Python {platform.python_version()}", platform.platform(terse=True)]
    releases += [f"{name} {version(name)}" for name in _PACKAGES]
    yield CheckResult("machine", "releases", "ok", ", ".join(releases))
    yield tried("machine", "Java", _java)


def _java() -> LookResult:
    java = find_java()
    return "ok", f"{java} is Java {java_release(java)}"


CHECKS: Final[Mapping[str, CheckFunction]] = MappingProxyType(
    {
        "settings": _settings,
        "machine": _machine,
        "cluster": partial(inspect, thoroughly=True),
        "cluster's lake": check_watched,
        "lake": check_lake,
        "alerts": check_alerts,
    }
)
"""The checks by what they look at. Each request in them has a limit of its own."""

_OF_EACH: Final = frozenset({"settings", "cluster", "cluster's lake"})
"""The checks of which every cluster has its own; the others are of what all share."""

_MARK: Final[dict[CheckState, tuple[str, str]]] = {
    "ok": ("ok   ", "green"),
    "warn": ("warn ", "yellow"),
    "wrong": ("wrong", "red bold"),
}


def examine(
    clusters: Sequence[Settings] | EvenkeelError, console: Console, checks: Mapping[str, CheckFunction] = CHECKS
) -> int:
    """Run all checks and print what they find; returns the exit code: 0, or 2 where something is wrong.

    Args:
        clusters: The settings of each cluster, or why they cannot be read: then only that is said.
        console: Where to print; progress is shown on a terminal.
        checks: The checks.
    """
    if isinstance(clusters, EvenkeelError):
        _print(CheckResult("settings", "settings", "wrong", str(clusters)), console)
        return SETUP_EXIT_CODE
    lines: list[CheckResult] = []
    for area, check in checks.items():
        for settings in clusters if area in _OF_EACH else clusters[:1]:
            with console.status(f"looking at the {area} …"):
                found = _run(area, check, settings)
            if area in _OF_EACH and len(clusters) > 1:
                found = [replace(line, what=f"{settings.cluster}: {line.what}") for line in found]
            lines += found
            for line in found:
                _print(line, console)
    counts = {state: sum(line.state == state for line in lines) for state in _MARK}
    say(console, f"{counts['ok']} ok, {counts['warn']} warn, {counts['wrong']} wrong")
    if counts["wrong"]:
        return SETUP_EXIT_CODE
    return 0


def _run(area: str, check: CheckFunction, settings: Settings) -> list[CheckResult]:
    found: list[CheckResult] = []
    try:
        found.extend(check(settings))
    except EvenkeelError as error:
        found.append(CheckResult(area, area, "wrong", str(error)))
    return found


def _print(line: CheckResult, console: Console) -> None:
    mark, style = _MARK[line.state]
    console.print(mark, style=style, end="  ", highlight=False)
    say(console, f"{line.what}: {line.text}")

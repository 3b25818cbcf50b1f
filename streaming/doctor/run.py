"""Runs the checks one after the other, and prints what each has found: cluster, job, lake, alerts."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

from rich.console import Console

from streaming.alerts import check_settings
from streaming.catalog import contents, faults
from streaming.config import Settings, Thresholds, checkpoint_of
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError, SetupError
from streaming.jars import find_java, java_release
from streaming.probe import CheckResult, CheckState, inspect, tried
from streaming.process import ALERTER, JOB, MAINTAINER, holder_of
from streaming.tables import LakeReader
from streaming.terminal import say

# A batch may take a minute, so the newest round of a job that is well may be older than the alert rules' bound of
# silence (20 s at least): that one counts from when a round was read, this one from when it began.
_FRESH_S: Final = 120.0

# How far a round may be ahead of this machine's clock, s: beyond it the page is visibly wrong.
_AHEAD_S: Final = 60.0

LookResult = tuple[CheckState, str]
"""State and text of a `CheckResult`."""


def check_watched(settings: Settings) -> Iterator[CheckResult]:
    """The checks of one cluster's part of the lake."""
    yield tried("lake", "checkpoint", lambda: ("ok", checkpoint_of(settings)))
    for what in (JOB, ALERTER):
        line = tried("lake", f"lease of the {what}", partial(_worker, what, settings.lake, settings.cluster))
        yield line
        if line.state == "wrong":
            return  # Each table would wait for the store in vain.
    states = {one.state for one in contents(settings.lake)}
    if "ok" in states and "unreadable" not in states:
        yield tried("lake", "newest round", lambda: _fresh(settings))


def check_lake(settings: Settings) -> Iterator[CheckResult]:
    """The checks of the lake itself, which all clusters share."""
    line = tried("lake", f"lease of the {MAINTAINER}", partial(_worker, MAINTAINER, settings.lake, None))
    yield line
    if line.state == "wrong":
        return
    found = contents(settings.lake)
    bad = [one for one in faults(found) if one.state == "unreadable"]
    # Where the store is away, all tables have the same reason.
    for reason in dict.fromkeys(one.reason for one in bad):
        names = ", ".join(one.table for one in bad if one.reason == reason)
        yield CheckResult("lake", "unreadable tables", "wrong", f"{names} cannot be read: {reason}.")
    there = [one for one in found if one.state == "ok"]
    if not there:
        if not bad:
            yield CheckResult("lake", "tables", "ok", f"none yet in {settings.lake}: the job creates them")
        return
    size = sum(one.size_bytes or 0 for one in there) // 2**20
    yield CheckResult("lake", "tables", "ok", f"{len(there)} in {settings.lake}, {size:,} MB")
    missing = [one.table for one in faults(found) if one.state == "missing"]
    if missing:
        text = f"{', '.join(missing)}: deleted, or of a release that has not run yet. The next start creates them."
        yield CheckResult("lake", "missing tables", "warn", text)


def _fresh(settings: Settings) -> LookResult:
    """How old the newest round is: that with the highest number, because a clock may have been ahead at any other."""
    rows = LakeReader(settings.lake).rows(
        "SELECT round_time, interval_ms FROM rounds_current WHERE cluster = $cluster", {"cluster": settings.cluster}
    )
    if not rows or rows[0]["round_time"] is None:
        text = (
            f"none of the cluster {settings.cluster} with a time: start probe and job, or correct the setting cluster"
        )
        return "warn", f"{text}."
    newest = rows[0]["round_time"]
    age = (datetime.now(UTC) - newest).total_seconds()
    at = f"{newest:%Y-%m-%d %H:%M:%S} UTC"
    if age < -_AHEAD_S:
        text = (
            f"{at}, {-age:,.0f} s ahead of this machine's clock, so it does not say whether rounds still come: check "
            "NTP here and on the brokers. Silence is noticed by page and alerter, which compare no clocks."
        )
        return "wrong", text
    said = f"{at}, {max(age, 0.0):,.0f} s ago"
    silent_s = Thresholds.load(settings.alerts.rules).silent_after_s(rows[0]["interval_ms"])
    if age > max(_FRESH_S, silent_s):
        hours = max(0.0, settings.probe.retention_ms / 1000 - age) / 3600
        return "warn", f"{said}: probe or job do not run. See their logs; rounds are kept for another {hours:,.0f} h."
    return "ok", said


def _worker(what: str, lake: str, cluster: str | None) -> LookResult:
    """Who holds the lease of job, alerter or maintainer."""
    holder = holder_of(what, lake, cluster)
    return "ok", "free: none runs" if holder is None else f"held by {holder}"


def check_alerts(settings: Settings) -> Iterator[CheckResult]:
    """The rules file, and whether each target's address is one that can be used. Nothing is sent."""
    told: list[str] = []
    # `up` reads it first of all.
    Thresholds.load(settings.alerts.rules)
    try:
        check_settings(settings, told.append)
    except SetupError as error:
        yield CheckResult("alerts", "rules and targets", "wrong", str(error))
    for said in told:
        is_missing = said.endswith(": none") or said.startswith("no rule reads")
        yield CheckResult("alerts", "rules and targets", "warn" if is_missing else "ok", said)


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

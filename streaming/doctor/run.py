"""Runs the checks, each within its time, and prints a line as soon as it is known.

A check runs in a thread of its own. One that does not end in time is a line like any other, and the next begins: the
doctor never hangs, whatever hangs below it.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from streaming.config import Settings, Thresholds
from streaming.doctor.lake import check_alerts, check_lake
from streaming.doctor.machine import check_machine
from streaming.doctor.redactor import Redactor
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError
from streaming.probe import CheckResult, CheckState, inspect
from streaming.terminal import printable

CheckFunction = Callable[[Settings], Iterator[CheckResult]]


@dataclass(frozen=True, slots=True)
class Check:
    """One group of checks.

    Attributes:
        area: Its name.
        run: Yields the lines.
        limit_s: How long it may take altogether.
    """

    area: str
    run: CheckFunction
    limit_s: float


def _settings(settings: Settings) -> Iterator[CheckResult]:
    yield CheckResult("settings", "cluster and lake", "ok", f"cluster {settings.cluster}, lake {settings.lake}")
    # `up` reads it first of all.
    Thresholds.load(settings.alerts.rules)


def _cluster(settings: Settings) -> Iterator[CheckResult]:
    """The check of `up`'s start, thing by thing, and what else a cluster says of itself."""
    return inspect(settings, thoroughly=True)


# A cluster that is in trouble needs its timeouts; a lake on a slow store some seconds per table.
CHECKS: Final = (
    Check("settings", _settings, 10),
    Check("machine", check_machine, 70),
    Check("cluster", _cluster, 75),
    Check("lake", check_lake, 75),
    Check("alerts", check_alerts, 20),
)

_MARK: Final[dict[CheckState, tuple[str, str]]] = {
    "ok": ("ok   ", "green"),
    "warn": ("warn ", "yellow"),
    "wrong": ("wrong", "red bold"),
}


def examine(
    settings: Settings | EvenkeelError,
    console: Console,
    *,
    as_json: bool = False,
    checks: tuple[Check, ...] = CHECKS,
) -> tuple[int, bool]:
    """Run all checks and print what they find.

    Args:
        settings: All settings, or why they cannot be read: then only that is said.
        console: Where to print; progress is shown on a terminal.
        as_json: Print one line of JSON per finding: area, what, state, text.
        checks: The checks.

    Returns:
        Exit code: 0, or 2 where something is wrong; and whether a check still hangs in its thread.
    """
    lines: list[CheckResult] = []
    if isinstance(settings, EvenkeelError):
        redactor = Redactor(None)
        lines.append(redactor.clean(CheckResult("settings", "settings", "wrong", str(settings))))
        _print(lines[0], console, as_json=as_json)
        return SETUP_EXIT_CODE, False
    redactor, hangs = Redactor(settings, _targets(settings)), False
    for check in checks:
        with console.status(f"looking at the {check.area} …"):
            for line in bounded(check, settings):
                hangs |= line is _HANGS
                found = redactor.clean(_late(check) if line is _HANGS else line)
                lines.append(found)
                _print(found, console, as_json=as_json)
    counts = {state: sum(line.state == state for line in lines) for state in _MARK}
    if not as_json:
        console.print(f"{counts['ok']} ok, {counts['warn']} warn, {counts['wrong']} wrong", highlight=False)
    return (SETUP_EXIT_CODE if counts["wrong"] else 0), hangs


_HANGS: Final = CheckResult("", "", "wrong", "")
"""Stands for a check that did not end in time."""


def _late(check: Check) -> CheckResult:
    text = f"The look at the {check.area} did not end within {check.limit_s:.0f} s: what it waits for does not answer."
    return CheckResult(check.area, "time", "wrong", text)


def bounded(check: Check, settings: Settings) -> Iterator[CheckResult]:
    """The lines of a check as they are found; `_HANGS` last, if it does not end in time."""
    found: queue.SimpleQueue[CheckResult | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            for line in check.run(settings):
                found.put(line)
        except EvenkeelError as error:
            found.put(CheckResult(check.area, check.area, "wrong", str(error)))
        except Exception as error:  # noqa: BLE001 - a report with a hole is worth more than none
            text = f"The look failed ({type(error).__name__}: {str(error)[:300]}): please report it."
            found.put(CheckResult(check.area, check.area, "wrong", text))
        finally:
            found.put(None)

    threading.Thread(target=run, name=f"doctor-{check.area}", daemon=True).start()
    ends = threading.Event()
    timer = threading.Timer(check.limit_s, ends.set)
    timer.daemon = True
    timer.start()
    try:
        while not ends.is_set():
            try:
                line = found.get(timeout=0.1)
            except queue.Empty:
                continue
            if line is None:
                return
            yield line
        yield _HANGS
    finally:
        timer.cancel()


def _print(line: CheckResult, console: Console, *, as_json: bool) -> None:
    if as_json:
        document = {"area": line.area, "what": line.what, "state": line.state, "text": line.text}
        console.out(json.dumps(document), highlight=False)
        return
    mark, style = _MARK[line.state]
    console.print(mark, style=style, end="  ", highlight=False)
    said = f"{line.what}: {line.text}" if line.what else line.text
    console.print(printable(said), highlight=False, markup=False, soft_wrap=True)


def _targets(settings: Settings) -> list[str]:
    """The addresses of alert targets, which contain secrets."""
    try:
        return [url.get_secret_value() for url in settings.alerts.all_targets().values()]
    except EvenkeelError:
        return []

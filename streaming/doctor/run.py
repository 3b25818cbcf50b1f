"""Runs the checks, each within its time, and prints what each has found.

A check runs in a thread of its own. One that does not end in time is a line like any other, and the next begins: the
doctor never hangs, whatever hangs below it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from rich.console import Console

from streaming.config import Settings, Thresholds
from streaming.doctor.lake import check_alerts, check_lake
from streaming.doctor.machine import check_machine
from streaming.doctor.redactor import Redactor
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError
from streaming.probe import CheckResult, CheckState, inspect
from streaming.terminal import say

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


# A cluster that is in trouble needs its timeouts; a lake on a slow store some seconds per table.
CHECKS: Final = (
    Check("settings", _settings, 10),
    Check("machine", check_machine, 70),
    Check("cluster", partial(inspect, thoroughly=True), 75),
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
    if isinstance(settings, EvenkeelError):
        wrong = CheckResult("settings", "settings", "wrong", str(settings))
        _print(Redactor(None).clean(wrong), console, as_json=as_json)
        return SETUP_EXIT_CODE, False
    redactor, hangs = Redactor(settings, _targets(settings)), False
    lines: list[CheckResult] = []
    for check in checks:
        with console.status(f"looking at the {check.area} …"):
            found, hung = _run(check, settings)
        hangs |= hung
        lines += found
        for line in found:
            _print(redactor.clean(line), console, as_json=as_json)
    counts = {state: sum(line.state == state for line in lines) for state in _MARK}
    if not as_json:
        say(console, f"{counts['ok']} ok, {counts['warn']} warn, {counts['wrong']} wrong")
    return (SETUP_EXIT_CODE if counts["wrong"] else 0), hangs


def _run(check: Check, settings: Settings) -> tuple[list[CheckResult], bool]:
    """The lines that a check finds within its time, and whether it hangs."""
    found: list[CheckResult] = []

    def run() -> None:
        try:
            found.extend(check.run(settings))
        except EvenkeelError as error:
            found.append(CheckResult(check.area, check.area, "wrong", str(error)))
        except Exception as error:  # noqa: BLE001 - a report with a hole is worth more than none
            text = f"The look failed ({type(error).__name__}: {str(error)[:300]}): please report it."
            found.append(CheckResult(check.area, check.area, "wrong", text))

    thread = threading.Thread(target=run, name=f"doctor-{check.area}", daemon=True)
    thread.start()
    thread.join(check.limit_s)
    lines = list(found)
    if hangs := thread.is_alive():
        text = f"The look at the {check.area} did not end within {check.limit_s:.0f} s: something does not answer."
        lines.append(CheckResult(check.area, "time", "wrong", text))
    return lines, hangs


def _print(line: CheckResult, console: Console, *, as_json: bool) -> None:
    if as_json:
        console.out(json.dumps(asdict(line)), highlight=False)
        return
    mark, style = _MARK[line.state]
    console.print(mark, style=style, end="  ", highlight=False)
    say(console, f"{line.what}: {line.text}" if line.what else line.text)


def _targets(settings: Settings) -> list[str]:
    """The addresses of alert targets, which contain secrets."""
    try:
        return [url.get_secret_value() for url in settings.alerts.all_targets().values()]
    except EvenkeelError:
        return []

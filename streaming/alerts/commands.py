"""The commands of the alerter: run it, check its settings, try its targets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from streaming.alerts.delivery.alertmanager import AlertmanagerTarget, is_alertmanager
from streaming.alerts.delivery.messages import trial_message
from streaming.alerts.delivery.targets import DeliveryTarget
from streaming.alerts.routes import Routing
from streaming.alerts.rules.rules import MOST_FILES, SILENT_S, UNJUDGED_S, Rule, load_rules
from streaming.alerts.run import Alerter
from streaming.config import Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import exit_code, on_stop_signals, room_log, set_up_log
from streaming.process import ALERTER, lease_of

_LOG = room_log(__name__)

# A server's alerter that could not go on tries again after this time.
_AGAIN_S = 10.0


def open_targets(settings: Settings) -> dict[str, DeliveryTarget | AlertmanagerTarget]:
    """The targets of the settings by name.

    Raises:
        SetupError: A URL cannot be used, or the file of targets is wrong.
    """
    return {
        name: _target(name, url.get_secret_value(), settings) for name, url in settings.alerts.all_targets().items()
    }


def _target(name: str, url: str, settings: Settings) -> DeliveryTarget | AlertmanagerTarget:
    alerts = settings.alerts
    if is_alertmanager(url):
        return AlertmanagerTarget(name, url, alerts.timeout_ms, alerts.resend_ms, settings.cluster)
    return DeliveryTarget(name, url, alerts.timeout_ms)


def check_settings(settings: Settings, say: Callable[[str], None]) -> None:
    """Read rules and targets, and print them; nothing is sent.

    Raises:
        SetupError: A rule or a target is wrong.
    """
    every, targets = load_rules(settings.alerts.rules, disabled_too=True), open_targets(settings)
    rules = [rule for rule in every if rule.enabled]
    say(f"rules: {', '.join(rule.name for rule in rules) or 'none'}")
    if off := [rule.name for rule in every if not rule.enabled]:
        say(f"off: {', '.join(off)}")
    for sentence in _unwatched(rules):
        say(sentence)
    Routing(settings.alerts, settings.owners, targets)
    say(f"targets: {', '.join(targets) or 'none'}")


def _unwatched(rules: Sequence[Rule]) -> list[str]:
    """Conditions that would harm all rules, but that no rule reports."""
    read = {column for rule in rules for column in rule.when.columns}
    what = {
        SILENT_S: "no more rounds arrive",
        UNJUDGED_S: "the tables cannot be evaluated",
        MOST_FILES: "the lake is not maintained",
    }
    return [f"no rule reads {name}: nobody is alerted when {then}" for name, then in what.items() if name not in read]


def send_test(settings: Settings, say: Callable[[str], None]) -> int:
    """Send one test message to each target, and print the outcome; returns the exit code.

    Raises:
        SetupError: There is no target, or one is wrong.
    """
    targets = open_targets(settings)
    if not targets:
        message = (
            "There is no alert target to test: name one in alerts.targets_file, or EVENKEEL_ALERTS__TARGETS__<NAME>."
        )
        raise SetupError(message)
    failed = 0
    for name, target in targets.items():
        outcome = target.send(trial_message(settings.cluster))
        failed += outcome.reason is not None
        say(f"{name}: {'took it' if outcome.reason is None else outcome.reason} ({outcome.duration_ms} ms)")
    return 1 if failed else 0


def main(settings: Settings) -> int:
    """Run the alerter until SIGINT or SIGTERM; returns the exit code."""
    set_up_log({"urllib3": logging.ERROR})  # its warnings contain paths of URLs
    return exit_code(lambda: _run(settings))


def _run(settings: Settings) -> int:
    work = AlerterWork(settings)
    with on_stop_signals(lambda _: work.ask_to_stop()):
        return 0 if work.run() else 1


class AlerterWork:
    """The alerter's rules and targets, and its work with them: as a process of its own, or as a thread of another."""

    def __init__(self, settings: Settings) -> None:
        """Read the rules and open the targets.

        Raises:
            SetupError: A rule, a target or a route is wrong.
        """
        self._settings = settings
        self._rules, self._targets = load_rules(settings.alerts.rules), open_targets(settings)
        Routing(settings.alerts, settings.owners, self._targets)
        self._stop = threading.Event()
        self._alerter: Alerter | None = None
        self._thread = threading.Thread(target=self._run_again_and_again, name="alerter", daemon=True)
        for sentence in _unwatched(self._rules):
            _LOG.warning("%s", sentence)

    def ask_to_stop(self) -> None:
        """Let `run` return soon; from any thread."""
        self._stop.set()
        if self._alerter is not None:
            self._alerter.wake.set()

    def run(self) -> bool:
        """Judge and deliver until asked to stop.

        Returns:
            False when the tables must be opened again, and when another alerter has taken over.

        Raises:
            SetupError: The lake cannot be used.
        """
        settings = self._settings
        lease = lease_of(ALERTER, settings.lake, settings.cluster)
        self._alerter = Alerter(settings, self._rules, self._targets, turn=lease)
        with self._alerter:
            named = ", ".join(self._targets) or "none, alerts are only written to the table"
            _LOG.info("%d rules for the cluster %s, targets: %s", len(self._rules), settings.cluster, named)
            return self._alerter.run(self._stop)

    def start(self) -> None:
        """Work in a thread, which begins again after a failure."""
        self._thread.start()

    @property
    def lives(self) -> bool:
        """Whether that thread runs."""
        return self._thread.is_alive()

    def stop(self, seconds: float) -> None:
        """End the thread, and wait that long for it: it may be in an attempt to deliver."""
        self.ask_to_stop()
        self._thread.join(seconds)

    def _run_again_and_again(self) -> None:
        while not self._stop.is_set():
            try:
                self.run()
            except EvenkeelError as error:
                _LOG.error("alerts are not judged: %s", error)
            except Exception:  # noqa: BLE001 - the thread must not die: the page would be served, and nobody be alerted
                _LOG.exception("the alerter failed, and begins again")
            self._stop.wait(_AGAIN_S)

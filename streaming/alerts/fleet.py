"""The alerters of all clusters of one process: a thread each, so that none of them can delay another's alerts.

The settings file is read again when it changes: alerters of new clusters begin, those of removed ones end. What still
fires of a cluster that was removed, or is closed in the lake, is gone: an alerter without rules says so, once.

At the end the commands: run it alone, check its settings, try its targets.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from streaming.alerts.delivery.alertmanager import AlertmanagerTarget, is_alertmanager
from streaming.alerts.delivery.messages import trial_message
from streaming.alerts.delivery.targets import DeliveryTarget
from streaming.alerts.judging.itself import PASSING
from streaming.alerts.routes import Routing
from streaming.alerts.rules.rules import MOST_FILES, SILENT_S, UNJUDGED_S, Rule, load_rules
from streaming.alerts.run import Alerter
from streaming.catalog import FleetLog
from streaming.config import FleetFile, Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import exit_code, room_log, set_up_log, stop_signals
from streaming.process import ALERTER, lease_of

_LOG = room_log(__name__)

# An alerter that could not go on begins again after this time.
_AGAIN_S = 10.0

# How often the settings file and the closed clusters are looked at, which costs two questions to a file system.
_POLL_S: Final = 5.0

# A delivery under way may take twice the timeout of ten seconds.
ALERTS_GRACE_S: Final = 22
"""How long a process waits for its alerters to end, s."""


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


class AlerterWork(threading.Thread):
    """The alerter of one cluster in a thread, which begins again after a failure."""

    def __init__(self, settings: Settings, *, closed: bool = False) -> None:
        """Read the rules and open the targets.

        Args:
            settings: The cluster's settings.
            closed: It is watched no more: what fires is gone, and the work ends when everybody has been told.

        Raises:
            SetupError: A rule, a target or a route is wrong.
        """
        super().__init__(name=f"alerter {settings.cluster}", daemon=True)
        self.settings, self._closed = settings, closed
        self._rules = () if closed else load_rules(settings.alerts.rules)
        self._targets = open_targets(settings)
        Routing(settings.alerts, settings.owners, self._targets)
        self._ends = threading.Event()
        self._alerter: Alerter | None = None

    def ask_to_stop(self) -> None:
        """Let the work end soon, unless it is in an attempt to deliver."""
        self._ends.set()
        if self._alerter is not None:
            self._alerter.wake.set()

    def run(self) -> None:
        """Work until asked to stop; begins again after a failure."""
        while not self._ends.is_set():
            try:
                if self._work() and self._closed:
                    return
            except EvenkeelError as error:
                _LOG.error("alerts of %s are not judged: %s", self.settings.cluster, error)
            except Exception:  # noqa: BLE001 - the thread must not die: the page would be served, and nobody be alerted
                _LOG.exception("the alerter of %s failed, and begins again", self.settings.cluster)
            self._ends.wait(_AGAIN_S)

    def _work(self) -> bool:
        """Judge and deliver until asked to stop; returns False when everything must be opened again.

        Raises:
            SetupError: The lake cannot be used.
        """
        settings = self.settings
        lease = lease_of(ALERTER, settings.lake, settings.cluster)
        self._alerter = Alerter(settings, self._rules, self._targets, turn=lease)
        with self._alerter:
            if self._closed:
                return self._alerter.run(self._ends, until=lambda alerter: alerter.settled)
            named = ", ".join(self._targets) or "none, alerts are only written to the table"
            _LOG.info("%d rules for the cluster %s, targets: %s", len(self._rules), settings.cluster, named)
            return self._alerter.run(self._ends)


class AlerterFleet:
    """An alerter for each cluster. `start` begins; `poll` follows the settings file, and a thread calls it."""

    def __init__(self, clusters: Sequence[Settings]) -> None:
        """Read the rules and open the targets of all.

        Args:
            clusters: The clusters' settings, one at least.

        Raises:
            SetupError: A rule, a target or a route is wrong.
        """
        self._file, self._given = FleetFile(clusters), clusters[0]
        self._log = FleetLog(clusters[0].lake)
        self._works = {settings.cluster: AlerterWork(settings) for settings in clusters}
        # Clusters that are closed, until they are watched again; their work may have ended.
        self._closed: dict[str, AlerterWork] = {}
        self._removed: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="alerters", daemon=True)

    @property
    def clusters(self) -> frozenset[str]:
        """Clusters whose alerts are judged."""
        return frozenset(self._works)

    @property
    def live(self) -> bool:
        """Whether every thread runs."""
        return self._thread.is_alive() and all(work.is_alive() for work in list(self._works.values()))

    def start(self) -> None:
        """Begin to work, in threads."""
        for work in self._works.values():
            work.start()
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End all alerters, and wait that long for them."""
        self._stop.set()
        self._thread.join(seconds)
        _end([*self._works.values(), *self._closed.values()], seconds)

    def poll(self) -> None:
        """Do what the settings file and the table `clusters` ask for. A wrong file is logged, and changes nothing."""
        try:
            if self._file.poll():
                self._follow_file()
        except EvenkeelError as error:
            _LOG.error("The settings file cannot be used; what it had before holds on: %s", error)
        try:
            closed = self._log.closed() | self._removed
        except PASSING:
            return  # the alerters themselves say what is wrong with the lake
        for name in sorted(closed - self._works.keys() - self._closed.keys()):
            self._closed[name] = work = AlerterWork(self._given.model_copy(update={"cluster": name}), closed=True)
            work.start()

    def _follow_file(self) -> None:
        now = self._file.clusters
        # A wrong rule or target is found before anything is stopped.
        begun = {
            name: AlerterWork(settings)
            for name, settings in now.items()
            if name not in self._works or self._works[name].settings.job != settings.job
        }
        gone = self._works.keys() - now.keys()
        self._removed = (self._removed | gone) - now.keys()
        ended = [self._works.pop(name) for name in (*gone, *(begun.keys() & self._works.keys()))]
        ended += [self._closed.pop(name) for name in begun.keys() & self._closed.keys()]
        _end(ended, ALERTS_GRACE_S)
        for name, work in begun.items():
            work.start()
            self._works[name] = work
        if begun or gone:
            _LOG.info("alerts are judged for the clusters %s now", ", ".join(sorted(self._works)))

    def _follow(self) -> None:
        while not self._stop.wait(_POLL_S):
            try:
                self.poll()
            except Exception:  # noqa: BLE001 - later changes of the file would be missed
                _LOG.exception("the settings file could not be followed")


def _end(works: Sequence[AlerterWork], seconds: float) -> None:
    until = time.monotonic() + seconds
    for work in works:
        work.ask_to_stop()
    for work in works:
        work.join(until - time.monotonic())


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


def main(clusters: Sequence[Settings]) -> int:
    """Run the alerters of these clusters until SIGINT or SIGTERM; returns the exit code."""
    set_up_log({"urllib3": logging.ERROR})  # its warnings contain paths of URLs
    return exit_code(lambda: _run(AlerterFleet(clusters)))


def _run(fleet: AlerterFleet) -> None:
    with stop_signals() as stop:
        fleet.start()
        stop.wait()
    fleet.stop(ALERTS_GRACE_S)

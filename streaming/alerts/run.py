"""The alerter as a process: looks at the tables, decides, writes, and has it delivered, until it is told to stop."""

from __future__ import annotations

import logging
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import duckdb
import pyarrow as pa
from deltalake.exceptions import DeltaError

from streaming.alerts.decisions import Decided, Decisions
from streaming.alerts.deliveries import Deliveries
from streaming.alerts.evaluation import Evaluation
from streaming.alerts.exceptions import AnotherAlerterError
from streaming.alerts.feed import Feed, LostTrackError
from streaming.alerts.firing import FIRING, Transition
from streaming.alerts.lanes import Delivery, Lane, Patience, Way
from streaming.alerts.messages import trial_message
from streaming.alerts.rules import Rule, load_rules
from streaming.alerts.targets import Target
from streaming.alerts.truths import Judge
from streaming.config import Settings
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError, SetupError
from streaming.tables.exceptions import LakeUnreadableError

__all__ = ["Alerter", "check_settings", "main", "open_targets", "send_test"]

_LOG = logging.getLogger("streaming.alerts")

# Where evaluation stands is written with every transition, and after this time without one: a restart judges no more
# rounds again than these. Every round would be 8,640 commits a day for nothing.
_KEEP_PLACE_MS = 600_000

# What the tables can fail with while others write them, or while a store is away: tried again at the next look.
_PASSING = (
    OSError,
    DeltaError,
    pa.ArrowException,
    duckdb.Error,
    LakeUnreadableError,
    LostTrackError,
    AnotherAlerterError,
)

# A clock that is set, or a machine that slept: how long we have waited ourselves is counted anew.
_CLOCK_STEP_S = 5.0


class Alerter:
    """One cluster's alerts. A context manager; `look` again and again, from one thread.

    Order of what a look does: judge new rounds, judge silence, commit the transitions, hand them to the lanes, write
    what the lanes say.
    """

    def __init__(
        self,
        settings: Settings,
        rules: Sequence[Rule],
        targets: Mapping[str, Way],
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the tables.

        Args:
            settings: All settings.
            rules: The rules.
            targets: What sends messages, by name of the target.
            clock: Seconds since the epoch.
            steady: Seconds that no setting of the clock moves.
        """
        self._alerts = settings.alerts
        self._clock, self._steady = clock, steady
        self._decisions = Decisions(settings.lake, settings.cluster)
        self._deliveries = Deliveries(settings.lake, settings.cluster)
        judge = Judge(rules)
        feed = Feed(settings.lake, settings.cluster, judge.columns, settings.job.heartbeat_ms)
        self._evaluation = Evaluation(settings.cluster, rules, judge, feed, self._alerts.look_back_ms)
        self._waits_since = steady()
        self._clocks = (clock(), steady())
        self._placed_at = self._ms()
        self._behind = True
        self._offered = 0
        self._trouble: str | None = None
        self._results: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self.wake = threading.Event()
        """Set when a lane has something to write down."""
        self._lanes = self._open_lanes(targets)

    def __enter__(self) -> Alerter:
        for lane in self._lanes:
            lane.start()
        return self

    def __exit__(self, *_: object) -> None:
        for lane in self._lanes:
            lane.stop()
        until = time.monotonic() + 2 * self._alerts.timeout_ms / 1000  # one to connect, one to answer
        for lane in self._lanes:
            lane.join(until - time.monotonic())
        try:
            self._write_results()
            if not self._behind:
                self._commit([], force=True)
        except _PASSING as error:
            _LOG.warning("the last deliveries could not be written: %s", error)

    @property
    def idle(self) -> bool:
        """Nothing is left to deliver."""
        return all(lane.idle for lane in self._lanes) and self._results.empty()

    def look(self) -> list[Decided]:
        """Look once; returns what was decided. What fails in passing is logged, and tried again at the next look."""
        missed: list[Decided] = []
        decided: list[Decided] = []
        try:
            self._write_results()
            if self._behind:
                self._evaluation.begin(self._decisions.remember())
                # A commit can fail after it was made; then nobody has been told yet.
                if self._decisions.number > self._offered:
                    missed = self._decisions.after(self._offered)
                    self._offered = self._decisions.number
                self._behind = False
            decided = self._commit(self._evaluation.look())
            decided += self._commit(self._evaluation.silence(self._ms(), self._silent_s()))
        except _PASSING as error:
            self._behind = True
            self._say_trouble(_one_line(error))
        else:
            self._say_trouble(None)
        self._offer(missed + decided)
        return decided

    def _say_trouble(self, trouble: str | None) -> None:
        """Say what is wrong once, not at every look, and once that it is over."""
        if trouble is not None and self._trouble is None:
            _LOG.warning("the tables cannot be judged now, again in a moment: %s", trouble)
        elif trouble is None and self._trouble is not None:
            _LOG.info("the tables can be judged again")
        self._trouble = trouble

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop; at once again when a lane has something to write down."""
        while not stop.is_set():
            self.wake.clear()
            self.look()
            self.wake.wait(self._alerts.look_ms / 1000)

    def _silent_s(self) -> float:
        """Seconds of silence: now minus the newest round, but no longer than we have waited ourselves."""
        clock, steady = self._clock(), self._steady()
        passed, really = clock - self._clocks[0], steady - self._clocks[1]
        if abs(passed - really) > _CLOCK_STEP_S:
            _LOG.warning("the clock of this machine was set by %.0f s, or it slept", passed - really)
            self._waits_since = steady
        self._clocks = (clock, steady)
        newest = self._evaluation.newest
        silent = clock - newest / 1000 if newest is not None else steady - self._waits_since
        if self._evaluation.is_silent:
            return silent
        return min(silent, steady - self._waits_since - self._alerts.start_grace_ms / 1000)

    def _commit(self, transitions: Sequence[Transition], *, force: bool = False) -> list[Decided]:
        now = self._ms()
        moved = self._evaluation.round is not None and self._evaluation.round != self._evaluation.kept_round
        due = moved and (force or now - self._placed_at > _KEEP_PLACE_MS)
        if not transitions and not due:
            return []
        late = [
            not self._evaluation.by_clock(t.rule) and now - t.time > self._alerts.late_after_ms for t in transitions
        ]
        decided = self._decisions.commit(transitions, self._evaluation.round, now, late)
        self._offered = self._decisions.number
        self._evaluation.kept_round = self._evaluation.round
        self._placed_at = now
        for transition in decided:
            level = logging.WARNING if transition.state == FIRING else logging.INFO
            if not transition.told:
                level = logging.DEBUG
            when = " (found late)" if transition.late else ""
            _LOG.log(level, "%s %s%s: %s", transition.state, transition.rule, when, transition.message)
        return decided

    def _offer(self, decided: Sequence[Decided]) -> None:
        newest = self._evaluation.newest
        fresh = not self._behind and newest is not None and self._ms() - newest <= self._alerts.late_after_ms
        for lane in self._lanes:
            lane.offer(decided, fresh)

    def _open_lanes(self, targets: Mapping[str, Way]) -> list[Lane]:
        now = self._ms()
        firing = {alert.alert_id for alert in self._decisions.remember().active.values()}
        self._offered = self._decisions.number
        decided = self._decisions.since(now - self._alerts.give_up_after_ms)
        known = self._deliveries.know(list(targets), [d.transition_id for d in decided], now)
        patience = Patience(self._alerts.longest_retry_ms / 1000, self._alerts.give_up_after_ms)
        lanes = []
        for name, way in targets.items():
            lane = Lane(name, way, patience, self._results, self.wake, known[name].sent, self._alerts.digest_above)
            left = known[name].left(decided, firing)
            if left:
                _LOG.info("%d transitions of before are still to be sent to %s", sum(d.told for d in left), name)
            lane.offer(left, fresh=False)
            lanes.append(lane)
        return lanes

    def _write_results(self) -> None:
        results: list[Delivery] = []
        while not self._results.empty():
            results.append(self._results.get())
        if not results:
            return
        try:
            self._deliveries.write(results)
        except _PASSING:
            for result in results:
                self._results.put(result)
            raise

    def _ms(self) -> int:
        return round(self._clock() * 1000)


def open_targets(settings: Settings) -> dict[str, Target]:
    """The targets of the settings by name.

    Raises:
        SetupError: A URL is none that Apprise knows, or the file of targets is wrong.
    """
    timeout_ms = settings.alerts.timeout_ms
    return {
        name: Target(name, url.get_secret_value(), timeout_ms) for name, url in settings.alerts.all_targets().items()
    }


def check_settings(settings: Settings, say: Callable[[str], None]) -> None:
    """Read rules and targets, and say what they are; nothing is sent.

    Raises:
        SetupError: A rule or a target is wrong.
    """
    rules, targets = load_rules(settings.alerts.rules), open_targets(settings)
    say(f"rules: {', '.join(rule.name for rule in rules) or 'none'}")
    say(f"targets: {', '.join(targets) or 'none'}")


def send_test(settings: Settings, say: Callable[[str], None]) -> int:
    """Send one test message to each target, and say what came of it; returns the exit code.

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
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # its warnings hold paths of URLs
    stop = threading.Event()
    try:
        rules = load_rules(settings.alerts.rules)
        targets = open_targets(settings)
        with Alerter(settings, rules, targets) as alerter:

            def end(*_: object) -> None:
                stop.set()
                alerter.wake.set()

            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, end)
            named = ", ".join(targets) or "no target: alerts are written to the table only"
            _LOG.info("%d rules on the cluster %s, told to %s", len(rules), settings.cluster, named)
            alerter.run(stop)
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return SETUP_EXIT_CODE
    except EvenkeelError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except _PASSING as error:
        sys.stderr.write(f"The alerts' tables in {settings.lake} cannot be opened: {_one_line(error)}\n")
        return 1
    return 0


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
